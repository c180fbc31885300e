"""Steps to a goal against the batch size: search, stacked training, steps to the result, budgets, fits, noise scale.

This front needs numpy and pyarrow only. Search (SciPy) is in `restudy.methods.sweeps.search`; training (torch) in
`restudy.methods.sweeps.programs` and `.trainer`; a function of your own goes through `restudy.methods.sweeps.user`.
"""

from restudy.methods.sweeps.fit import Interval, Scaling, bootstrap_scaling, fit_scaling, local_slopes, log_slope
from restudy.methods.sweeps.measurements import (
    COMPLETE,
    INCOMPLETE,
    INFEASIBLE,
    apply_example_budget,
    apply_step_budget,
    best_errors,
    fewest_steps,
    first_steps,
    steps_to_result,
)
from restudy.methods.sweeps.noise import NoiseScale, noise_scale
from restudy.methods.sweeps.validity import Edge, edge_of, feasible_shares, outer_advantage

__all__ = [
    "COMPLETE",
    "INCOMPLETE",
    "INFEASIBLE",
    "Edge",
    "Interval",
    "NoiseScale",
    "Scaling",
    "apply_example_budget",
    "apply_step_budget",
    "best_errors",
    "bootstrap_scaling",
    "edge_of",
    "feasible_shares",
    "fewest_steps",
    "first_steps",
    "fit_scaling",
    "local_slopes",
    "log_slope",
    "noise_scale",
    "outer_advantage",
    "steps_to_result",
]
