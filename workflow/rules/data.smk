# One rule fetches every data set; the small SHA256SUMS stands for it in the DAG.
# On a cluster only stages are sent to its nodes: fetching needs the network, the rest takes seconds.


localrules:
    data,


rule data:
    output:
        f"{dag.data_folder()}/{{name}}/SHA256SUMS",
    log:
        "work/logs/data/{name}.log",
    wildcard_constraints:
        name=r"[a-z0-9_]+",
    retries: 1
    params:
        sum=dag.declared_sum,
    shell:
        "python -m restudy.data fetch {wildcards.name} > {log} 2>&1"
