# A named rule for each stage of each study (`rao_blackwell_toy`).
# The shell line is part of every job's code: one blank more would run the whole house again.

for slug, stage in dag.stages():

    rule:
        name:
            f"{slug}_{stage}"
        input:
            dag.inputs("stage"),
            dag.data_inputs,
        output:
            dag.stage_outputs(slug, stage),
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
