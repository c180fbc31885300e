# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as batch_size_check with:
    output:
        dag.stage_outputs("batch_size", "check"),


use rule stage as batch_size_sweep with:
    output:
        dag.stage_outputs("batch_size", "sweep"),


use rule stage as batch_size_timing with:
    output:
        dag.stage_outputs("batch_size", "timing"),
