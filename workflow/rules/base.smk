# The base rules: a study's rules.smk inherits them (`use rule stage as ... with: output: ...`).
# The shell line is part of every job's code: one blank more would run the whole house again.


rule stage:
    input:
        dag.inputs("stage"),
        dag.data_inputs,
    log:
        "work/logs/{preset}/{study}/{stage}.{shard}.log",
    benchmark:
        "work/benchmarks/{preset}/{study}/{stage}.{shard}.tsv"
    priority: dag.priority("stage")
    threads: 1
    resources:
        mem_mb=dag.memory_mb,
        gpu=dag.gpus,
    params:
        fp=dag.fp("stage"),
    shell:
        dag.SHELL
