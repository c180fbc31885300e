# What people look at: notebooks, pages, and the targets that draw or render only.


localrules:
    figure,
    notebook,
    page,
    index,


rule figure:
    input:
        dag.inputs("figure"),
    output:
        "figures/{preset}/{study}/{figure}.svg",
        "figures/{preset}/{study}/{figure}.png",
        "figures/{preset}/{study}/{figure}.pdf",
    log:
        "work/logs/{preset}/{study}/figure_{figure}.log",
    wildcard_constraints:
        figure=r"[A-Za-z0-9_]+",
    priority: dag.priority("figure")
    params:
        fp=dag.fp("figure"),
    shell:
        dag.SHELL


rule notebook:
    input:
        dag.inputs("notebook"),
    output:
        "report/{preset}/notebooks/{study}.html",
    log:
        "work/logs/{preset}/{study}/notebook.log",
    benchmark:
        "work/benchmarks/{preset}/{study}/notebook.tsv"
    priority: dag.priority("notebook")
    retries: 2
    # Kernels pick ports, release and bind them again: two at once can collide.
    resources:
        kernel=1,
    params:
        fp=dag.fp("notebook"),
    shell:
        dag.SHELL


rule page:
    input:
        dag.inputs("page"),
    output:
        "report/{preset}/{study}.html",
    log:
        "work/logs/{preset}/{study}/page.log",
    priority: dag.priority("page")
    params:
        fp=dag.fp("page"),
    shell:
        dag.SHELL


rule index:
    input:
        lambda w: dag.all_targets(w.preset, ["page"]),
    output:
        "report/{preset}/index.html",
    log:
        "work/logs/{preset}/index.log",
    params:
        fp=lambda w: dag.index_fp(w.preset),
    shell:
        "python -m restudy.report {wildcards.preset} > {log} 2>&1"


rule figures:
    input:
        dag.all_targets(preset, ["figure"]),


rule notebooks:
    input:
        dag.all_targets(preset, ["notebook"]),


rule report:
    input:
        f"report/{preset}/index.html",
