# What people look at: notebooks, pages, and the targets that draw or render only.


rule figure:
    input:
        dag.inputs("figure"),
    output:
        "figures/{preset}/{study}/{figure}.svg",
        "figures/{preset}/{study}/{figure}.png",
        "figures/{preset}/{study}/{figure}.pdf",
    params:
        fp=dag.fp("figure"),
    log:
        "work/logs/{preset}/{study}/figure_{figure}.log",
    wildcard_constraints:
        figure=r"[A-Za-z0-9_]+",
    priority: dag.priority("figure")
    shell:
        dag.SHELL


rule notebook:
    input:
        dag.inputs("notebook"),
    output:
        "report/{preset}/notebooks/{study}.html",
    params:
        fp=dag.fp("notebook"),
    log:
        "work/logs/{preset}/{study}/notebook.log",
    benchmark:
        "work/benchmarks/{preset}/{study}/notebook.tsv"
    # Kernels pick ports, release and bind them again: two at once can collide.
    resources:
        kernel=1,
    retries: 2
    priority: dag.priority("notebook")
    shell:
        dag.SHELL


rule page:
    input:
        dag.inputs("page"),
    output:
        "report/{preset}/{study}.html",
    params:
        fp=dag.fp("page"),
    log:
        "work/logs/{preset}/{study}/page.log",
    priority: dag.priority("page")
    shell:
        dag.SHELL


rule index:
    input:
        lambda w: dag.all_targets(w.preset, ["page"]),
    output:
        "report/{preset}/index.html",
    params:
        fp=lambda w: dag.index_fp(w.preset),
    log:
        "work/logs/{preset}/index.log",
    shell:
        "python -m restudy.report {wildcards.preset} 2> >(tee {log} >&2)"


rule figures:
    input:
        dag.all_targets(preset, ["figure"]),


rule notebooks:
    input:
        dag.all_targets(preset, ["notebook"]),


rule report:
    input:
        f"report/{preset}/index.html",
