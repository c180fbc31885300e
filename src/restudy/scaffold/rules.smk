# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as my_study_descend with:
    output:
        dag.stage_outputs("my_study", "descend"),
