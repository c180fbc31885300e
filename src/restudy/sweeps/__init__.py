"""Steps to a goal against the batch size: search, stacked training, steps to the result, budgets, fits, noise scale.

This front needs numpy and pyarrow only. Search (SciPy) is in `restudy.sweeps.search`; training (torch) in
`restudy.sweeps.programs` and `restudy.sweeps.trainer`; a function of your own goes through `restudy.sweeps.user`.
"""

from restudy.sweeps.fit import Interval, Scaling, bootstrap_scaling, fit_scaling, local_slopes, log_slope
from restudy.sweeps.measurements import (
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
from restudy.sweeps.noise import NoiseScale, noise_scale
from restudy.sweeps.validity import Edge, edge_of, feasible_shares, outer_advantage

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
