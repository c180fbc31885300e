# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as head_pruning_check with:
    output:
        dag.stage_outputs("head_pruning", "check"),


use rule stage as head_pruning_train with:
    output:
        dag.stage_outputs("head_pruning", "train"),


use rule stage as head_pruning_prune with:
    output:
        dag.stage_outputs("head_pruning", "prune"),


use rule stage as head_pruning_measure with:
    output:
        dag.stage_outputs("head_pruning", "measure"),


use rule stage as head_pruning_text with:
    output:
        dag.stage_outputs("head_pruning", "text"),


use rule stage as head_pruning_text_train with:
    output:
        dag.stage_outputs("head_pruning", "text_train"),


use rule stage as head_pruning_text_prune with:
    output:
        dag.stage_outputs("head_pruning", "text_prune"),


use rule stage as head_pruning_text_measure with:
    output:
        dag.stage_outputs("head_pruning", "text_measure"),
