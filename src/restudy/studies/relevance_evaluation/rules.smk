# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as relevance_evaluation_check with:
    output:
        dag.stage_outputs("relevance_evaluation", "check"),


use rule stage as relevance_evaluation_train with:
    output:
        dag.stage_outputs("relevance_evaluation", "train"),


use rule stage as relevance_evaluation_perturb with:
    output:
        dag.stage_outputs("relevance_evaluation", "perturb"),


use rule stage as relevance_evaluation_probe with:
    output:
        dag.stage_outputs("relevance_evaluation", "probe"),


use rule stage as relevance_evaluation_photos with:
    output:
        dag.stage_outputs("relevance_evaluation", "photos"),
