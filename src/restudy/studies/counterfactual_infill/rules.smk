# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as counterfactual_infill_check with:
    output:
        dag.stage_outputs("counterfactual_infill", "check"),


use rule stage as counterfactual_infill_train with:
    output:
        dag.stage_outputs("counterfactual_infill", "train"),


use rule stage as counterfactual_infill_fill with:
    output:
        dag.stage_outputs("counterfactual_infill", "fill"),


use rule stage as counterfactual_infill_explain with:
    output:
        dag.stage_outputs("counterfactual_infill", "explain"),


use rule stage as counterfactual_infill_measure with:
    output:
        dag.stage_outputs("counterfactual_infill", "measure"),
