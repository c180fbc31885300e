# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as saliency_sanity_check with:
    output:
        dag.stage_outputs("saliency_sanity", "check"),


use rule stage as saliency_sanity_train with:
    output:
        dag.stage_outputs("saliency_sanity", "train"),


use rule stage as saliency_sanity_measure with:
    output:
        dag.stage_outputs("saliency_sanity", "measure"),


use rule stage as saliency_sanity_photos with:
    output:
        dag.stage_outputs("saliency_sanity", "photos"),
