"""The front door: configuration, discovery of studies, targets. Rules stand in workflow/."""

from restudy.bench import dag


configfile: "workflow/config.yaml"


preset = config["preset"]
dag.guard()


wildcard_constraints:
    preset=r"[A-Za-z][A-Za-z0-9_-]*",
    study=dag.studies_pattern(),
    stage=r"[a-z0-9_]+",
    shard=r"[A-Za-z0-9_.+-]+",


rule all:
    default_target: True
    input:
        dag.all_targets(preset),
        f"report/{preset}/index.html",


include: "workflow/rules/base.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/report.smk"


for path in dag.rule_files():

    include: path


for slug in dag.studies_at(preset):

    rule:
        name:
            slug
        input:
            dag.targets(slug, preset),
