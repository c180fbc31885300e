# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as batch_norm_identities with:
    output:
        dag.stage_outputs("batch_norm", "identities"),


use rule stage as batch_norm_train with:
    output:
        dag.stage_outputs("batch_norm", "train"),


use rule stage as batch_norm_deep with:
    output:
        dag.stage_outputs("batch_norm", "deep"),
