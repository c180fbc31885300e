# From the jobs' tables to the verdicts: the same rules for every study.


localrules:
    table,
    verdicts_of_study,


rule table:
    input:
        dag.inputs("table"),
    output:
        "results/{preset}/{study}/{table}.parquet",
    log:
        "work/logs/{preset}/{study}/table_{table}.log",
    wildcard_constraints:
        table=dag.tables_pattern(),
    priority: dag.priority("table")
    params:
        fp=dag.fp("table"),
    shell:
        dag.SHELL


rule verdicts_of_study:
    input:
        dag.inputs("verdicts"),
    output:
        "results/{preset}/{study}/verdicts.parquet",
        "results/{preset}/{study}/verdict_parts.parquet",
        "results/{preset}/{study}.verdicts.json",
    log:
        "work/logs/{preset}/{study}/verdicts.log",
    benchmark:
        "work/benchmarks/{preset}/{study}/verdicts.tsv"
    priority: dag.priority("verdicts")
    params:
        fp=dag.fp("verdicts"),
    shell:
        dag.SHELL
