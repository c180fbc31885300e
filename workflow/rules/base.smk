# The base rules: a study's rules.smk inherits them (`use rule stage as ... with: output: ...`).
# The shell line is part of every job's code: one blank more would run the whole house again.


rule stage:
    input:
        dag.inputs("stage"),
    params:
        fp=dag.fp("stage"),
    log:
        "work/logs/{preset}/{study}/{stage}.{shard}.log",
    benchmark:
        "work/benchmarks/{preset}/{study}/{stage}.{shard}.tsv"
    threads: 1
    resources:
        mem_mb=dag.memory_mb,
    priority: dag.priority("stage")
    shell:
        dag.SHELL
