# One rule fetches every data set; the small SHA256SUMS stands for it in the DAG.


rule data:
    output:
        f"{dag.data_folder()}/{{name}}/SHA256SUMS",
    log:
        "work/logs/data/{name}.log",
    wildcard_constraints:
        name=r"[a-z0-9_]+",
    retries: 1
    shell:
        "python -m restudy.data fetch {wildcards.name} > {log} 2>&1"
