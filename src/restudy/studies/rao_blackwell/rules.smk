# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as rao_blackwell_check with:
    output:
        dag.stage_outputs("rao_blackwell", "check"),


use rule stage as rao_blackwell_toy with:
    output:
        dag.stage_outputs("rao_blackwell", "toy"),


use rule stage as rao_blackwell_semi_supervised with:
    output:
        dag.stage_outputs("rao_blackwell", "semi_supervised"),


use rule stage as rao_blackwell_moving_digit with:
    output:
        dag.stage_outputs("rao_blackwell", "moving_digit"),
