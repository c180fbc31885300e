# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as importance_weighting_check with:
    output:
        dag.stage_outputs("importance_weighting", "check"),


use rule stage as importance_weighting_toy with:
    output:
        dag.stage_outputs("importance_weighting", "toy"),


use rule stage as importance_weighting_train with:
    output:
        dag.stage_outputs("importance_weighting", "train"),


use rule stage as importance_weighting_evaluate with:
    output:
        dag.stage_outputs("importance_weighting", "evaluate"),


use rule stage as importance_weighting_signal with:
    output:
        dag.stage_outputs("importance_weighting", "signal"),
