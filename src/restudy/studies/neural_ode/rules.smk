# The study's own jobs; inputs, parameters and resources come from the base rule and study.yaml.


use rule stage as neural_ode_identities with:
    output:
        dag.stage_outputs("neural_ode", "identities"),


use rule stage as neural_ode_costs with:
    output:
        dag.stage_outputs("neural_ode", "costs"),


use rule stage as neural_ode_classify with:
    output:
        dag.stage_outputs("neural_ode", "classify"),


use rule stage as neural_ode_solvers with:
    output:
        dag.stage_outputs("neural_ode", "solvers"),


use rule stage as neural_ode_density with:
    output:
        dag.stage_outputs("neural_ode", "density"),


use rule stage as neural_ode_spirals with:
    output:
        dag.stage_outputs("neural_ode", "spirals"),


use rule stage as neural_ode_events with:
    output:
        dag.stage_outputs("neural_ode", "events"),
