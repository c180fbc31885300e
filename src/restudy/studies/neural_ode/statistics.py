"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

The replicate is the seed unless a docstring says otherwise; positive is the paper's direction.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.neural_ode.exact_statistics import (
    adjoint_bytes_growth,
    adjoint_slope_shortfall,
    backprop_bytes_bend,
    backprop_bytes_shortfall,
    determinants_taken,
    equations_error,
    euler_slope_error,
    finest_adjoint_error,
    fixed_step_gap_shortfall,
    flow_both_ways,
    flow_mass_error,
    flow_round_trip,
    flow_trace_error,
    likelihood_error,
    long_way_shortfall,
    tied_gradient_error,
    tied_value_error,
    time_gradient_error,
    trace_error,
)
from restudy.studies.neural_ode.tidy import (
    BySeed,
    Tables,
    by_seed,
    determination,
    minus,
    over,
    replicates,
    series,
    slope,
    where,
)

__all__ = [
    "adjoint_bytes_growth",
    "adjoint_slope_shortfall",
    "backprop_bytes_bend",
    "backprop_bytes_shortfall",
    "determinants_taken",
    "equations_error",
    "euler_slope_error",
    "finest_adjoint_error",
    "fixed_step_gap_shortfall",
    "flow_both_ways",
    "flow_mass_error",
    "flow_round_trip",
    "flow_trace_error",
    "likelihood_error",
    "long_way_shortfall",
    "tied_gradient_error",
    "tied_value_error",
    "time_gradient_error",
    "trace_error",
]
Statistic = Callable[[Tables], pa.Table]
LOOSE, TRAINED, FINE = 1e-2, 1e-3, 1e-8
TARGET, WIDTH = "crescents", 8


def _seeds(rows: pa.Table) -> list[int]:
    return sorted(set(rows["seed"].to_pylist()))


# The trained classifiers
def _trained(arm: str, metric: str, tables: Tables) -> BySeed:
    return by_seed(tables["training"], arm=arm, metric=metric)


def _accuracy(arm: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates({seed: 1 - value for seed, value in _trained(arm, "test_error", tables).items()})

    statistic.__doc__ = says
    return statistic


odenet_accuracy = _accuracy("odenet", "Gate: test accuracy of the ODE-Net.")
resnet_accuracy = _accuracy("resnet6", "Gate: test accuracy of the residual net.")


def accuracy_ode_minus_resnet(tables: Tables) -> pa.Table:
    """Test accuracy: ODE-Net minus the residual net of six blocks."""
    return replicates(minus(_trained("resnet6", "test_error", tables), _trained("odenet", "test_error", tables)))


def accuracy_ode_minus_tied(tables: Tables) -> pa.Table:
    """Test accuracy: ODE-Net minus the tied residual net of as many parameters."""
    return replicates(minus(_trained("tied6", "test_error", tables), _trained("odenet", "test_error", tables)))


def parameter_excess(tables: Tables) -> pa.Table:
    """Parameters of the ODE-Net over the residual net's, beyond one half."""
    ratio = over(_trained("odenet", "parameters", tables), _trained("resnet6", "parameters", tables))
    return replicates({seed: max(0.0, value - 0.5) for seed, value in ratio.items()})


def backward_ratio(tables: Tables) -> pa.Table:
    """Backward over forward evaluations of the ODE-Net, means over training."""
    return replicates(over(_trained("odenet", "backward_mean", tables), _trained("odenet", "forward_mean", tables)))


def evaluations_growth(tables: Tables) -> pa.Table:
    """Forward evaluations of the ODE-Net: last tenth of training over the first."""
    return replicates(over(_trained("odenet", "forward_late", tables), _trained("odenet", "forward_early", tables)))


def _plain_over_residual(blocks: int, tables: Tables) -> BySeed:
    losses = (_trained(f"{kind}{blocks}", "train_loss", tables) for kind in ("plain", "resnet"))
    return over(*losses)


def plain_over_residual(tables: Tables) -> pa.Table:
    """Final train loss at twelve blocks: plain over residual."""
    return replicates(_plain_over_residual(12, tables))


def plain_over_residual_growth(tables: Tables) -> pa.Table:
    """The same ratio at twelve blocks over that at six."""
    return replicates(over(_plain_over_residual(12, tables), _plain_over_residual(6, tables)))


def residual_accuracy(tables: Tables) -> pa.Table:
    """Gate: final train accuracy of the residual net of twelve blocks."""
    return replicates(_trained("resnet12", "train_accuracy", tables))


# Tolerances and solvers after training
def _at(tolerance: float, metric: str, tables: Tables) -> BySeed:
    return by_seed(tables["tolerances"], tolerance=tolerance, metric=metric)


def error_slope_inside(tables: Tables) -> pa.Table:
    """Half less the distance from 1 of the slope of log error against log tolerance."""
    found = {}
    for seed in _seeds(tables["tolerances"]):
        x, y = series(tables["tolerances"], "tolerance", seed=seed, metric="state_error")
        found[seed] = 0.5 - abs(slope(x, y) - 1)
    return replicates(found)


def evaluations_reversed(tables: Tables) -> pa.Table:
    """Neighbouring tolerances at which the looser one needs more evaluations."""
    found = {}
    for seed in _seeds(tables["tolerances"]):
        _, counts = series(tables["tolerances"], "tolerance", seed=seed, metric="evaluations")
        found[seed] = float((np.diff(counts) > 0).sum())
    return replicates(found)


def evaluations_ratio(tables: Tables) -> pa.Table:
    """Evaluations at tolerance 1e-8 over those at 1e-2."""
    return replicates(over(_at(FINE, "evaluations", tables), _at(LOOSE, "evaluations", tables)))


def loosening_shortfall(tables: Tables) -> pa.Table:
    """What evaluations at 1e-3, as trained, over those at 1e-2 lack of 1.1."""
    ratio = over(_at(TRAINED, "evaluations", tables), _at(LOOSE, "evaluations", tables))
    return replicates({seed: max(0.0, 1.1 - value) for seed, value in ratio.items()})


def accuracy_loose_minus_trained(tables: Tables) -> pa.Table:
    """Test accuracy at tolerance 1e-2 minus that at 1e-3, as trained."""
    return replicates(minus(_at(LOOSE, "accuracy", tables), _at(TRAINED, "accuracy", tables)))


def time_by_evaluations(tables: Tables) -> pa.Table:
    """R^2 of CPU time against evaluations over the tolerances (timing, this machine)."""
    found = {}
    for seed in _seeds(tables["tolerances"]):
        x, counts = series(tables["tolerances"], "tolerance", seed=seed, metric="evaluations")
        y, seconds = series(tables["solver_timings"], "tolerance", "seconds", seed=seed)
        found[seed] = determination(counts, seconds) if list(x) == list(y) else float("nan")
    return replicates(found)


def _exchange(tables: Tables, arm: str, solver: str, metric: str) -> BySeed:
    return by_seed(tables["exchanges"], arm=arm, solver=solver, metric=metric)


def _largest(tables: Tables, metric: str, from_dopri5: bool) -> BySeed:
    reference = _exchange(tables, "odenet", "dopri5", metric)
    found = dict.fromkeys(reference, 0.0)
    for solver in ("dopri8", "bosh3", "scipy"):
        for seed, value in _exchange(tables, "odenet", solver, metric).items():
            found[seed] = max(found[seed], abs(value - reference[seed]) if from_dopri5 else value)
    return found


def solver_logit_distance(tables: Tables) -> pa.Table:
    """Largest distance of a logit to dopri5's, over three other solvers at one tolerance."""
    return replicates(_largest(tables, "logit_distance", False))


def solver_accuracy_distance(tables: Tables) -> pa.Table:
    """Largest difference of test accuracy to dopri5's, rounded to whole images."""
    found = _largest(tables, "exact_accuracy", True)
    return replicates({seed: round(value, 9) for seed, value in found.items()})


def _halved(tables: Tables, arm: str, solver: str, steps: int) -> BySeed:
    coarse = _exchange(tables, arm, f"{solver}-{steps}", "accuracy")
    fine = _exchange(tables, arm, f"{solver}-{2 * steps}", "accuracy")
    return {seed: abs(value) for seed, value in minus(coarse, fine).items()}


def halved_step_ode(tables: Tables) -> pa.Table:
    """Change of the ODE-Net's test accuracy when the step of rk4 is halved, absolute."""
    return replicates({seed: round(value, 9) for seed, value in _halved(tables, "odenet", "rk4", 8).items()})


def halved_step_tied(tables: Tables) -> pa.Table:
    """Change of the tied residual net's test accuracy when Euler's unit step is halved, absolute."""
    return replicates(_halved(tables, "tied6", "euler", 6))


# Time
def _seconds(arm: str, tables: Tables) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    rows = tables["train_timings"]
    return {seed: series(rows, "step", "seconds", arm=arm, seed=seed) for seed in _seeds(rows)}


def step_time_ratio(tables: Tables) -> pa.Table:
    """CPU time of a training step: ODE-Net by adjoint over the residual net (timing, this machine)."""
    ode, residual = _seconds("odenet", tables), _seconds("resnet6", tables)
    each = {seed: ode[seed][1][-1] / ode[seed][0][-1] for seed in ode}
    return replicates({s: float(each[s] / (residual[s][1][-1] / residual[s][0][-1])) for s in each})


def _reached(tables: Tables, arm: str, seed: int, goal: float) -> float:
    """CPU seconds until the running train accuracy (a tenth of the run) reaches the goal, or of the whole run."""
    _, accuracy = series(tables["curves"], "step", arm=arm, seed=seed, metric="accuracy")
    width = max(1, len(accuracy) // 10)
    running = np.convolve(accuracy, np.ones(width) / width, "valid")
    seconds = _seconds(arm, tables)[seed][1][width - 1 :]
    there = np.flatnonzero(running >= goal)
    return float(seconds[there[0]] if len(there) else seconds[-1])


def time_to_accuracy_ratio(tables: Tables) -> pa.Table:
    """CPU time to the train accuracy that the residual net has after nine tenths: ODE-Net over the residual net.

    Where the ODE-Net never reaches it, its whole time counts, which is too little.
    """
    found = {}
    for seed in _seeds(tables["curves"]):
        _, accuracy = series(tables["curves"], "step", arm="resnet6", seed=seed, metric="accuracy")
        width = max(1, len(accuracy) // 10)
        running = np.convolve(accuracy, np.ones(width) / width, "valid")
        goal = float(running[: max(1, int(0.9 * len(accuracy)) - width + 1)].max())
        found[seed] = _reached(tables, "odenet", seed, goal) / _reached(tables, "resnet6", seed, goal)
    return replicates(found)


def determinant_exponent_excess(tables: Tables) -> pa.Table:
    """Exponent of CPU time in the dimension: determinant minus closed-form trace (timing, this machine)."""
    rows, found = tables["trace_timings"], {}
    for seed in _seeds(rows):
        slopes = [
            slope(*series(rows, "dimensions", "seconds", seed=seed, method=method))
            for method in ("determinant", "trace")
        ]
        found[seed] = slopes[0] - slopes[1]
    return replicates(found)


# Densities
def _kl(arm: str, width: int, tables: Tables) -> BySeed:
    return by_seed(tables["densities"], arm=arm, target=TARGET, width=width, metric="kl")


def kl_nf_minus_cnf(tables: Tables) -> pa.Table:
    """KL to the crescents, nats, at eight units or layers: planar flow after as many steps minus continuous flow."""
    return replicates(minus(_kl("nf", WIDTH, tables), _kl("cnf", WIDTH, tables)))


def kl_long_minus_cnf(tables: Tables) -> pa.Table:
    """The same after about as much CPU time."""
    return replicates(minus(_kl("nf_long", WIDTH, tables), _kl("cnf", WIDTH, tables)))


def kl_median_gap(tables: Tables) -> pa.Table:
    """Median over 2, 8 and 32 of the gap after as many steps: positive when at least two widths favour the ODE."""
    gaps = [minus(_kl("nf", width, tables), _kl("cnf", width, tables)) for width in (2, 8, 32)]
    return replicates({seed: float(np.median([gap[seed] for gap in gaps])) for seed in gaps[0]})


def _exactness(metric: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["densities"], arm="cnf", metric=metric)
        found: BySeed = {}
        for seed, value in zip(rows["seed"].to_pylist(), rows["value"].to_pylist(), strict=True):
            found[seed] = max(found.get(seed, 0.0), value)
        return replicates(found)

    statistic.__doc__ = says
    return statistic


trained_mass_error = _exactness("mass_error", "Trained continuous flows: distance of the density's integral from 1.")
trained_round_trip = _exactness("round_trip", "Trained continuous flows: distance of samples carried back and forth.")
trained_jacobian_gap = _exactness(
    "jacobian_gap", "Trained flows: trace integral against the full Jacobian's log |det|."
)


# Spirals
def _future(arm: str, points: int, tables: Tables) -> BySeed:
    return by_seed(tables["forecasts"], arm=arm, points=points, metric="future")


def _future_ratio(arm: str, points: int, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(over(_future(arm, points, tables), _future("latent_ode", points, tables)))

    statistic.__doc__ = says
    return statistic


rnn_over_latent_30 = _future_ratio("rnn", 30, "Error after the window at 30 points: RNN over latent ODE.")
rnn_over_latent_50 = _future_ratio("rnn", 50, "Error after the window at 50 points: RNN over latent ODE.")
gaps_over_latent_30 = _future_ratio("rnn_gaps", 30, "Error at 30 points: RNN with time gaps over latent ODE.")
gaps_over_latent_50 = _future_ratio("rnn_gaps", 50, "Error at 50 points: RNN with time gaps over latent ODE.")
gru_over_latent_30 = _future_ratio("gru_gaps", 30, "Error at 30 points: GRU with time gaps over latent ODE.")
gru_over_latent_50 = _future_ratio("gru_gaps", 50, "Error at 50 points: GRU with time gaps over latent ODE.")


def ratio_shrinks(tables: Tables) -> pa.Table:
    """RNN over latent ODE: the ratio at 30 points over that at 100."""
    few, many = (over(_future("rnn", n, tables), _future("latent_ode", n, tables)) for n in (30, 100))
    return replicates(over(few, many))


def rnn_over_standstill(tables: Tables) -> pa.Table:
    """Gate: the RNN's error after the window at 30 points over that of repeating the last observation."""
    still = by_seed(tables["forecasts"], arm="rnn", points=30, metric="future_of_last")
    return replicates(over(_future("rnn", 30, tables), still))


def linear_over_latent(tables: Tables) -> pa.Table:
    """Error between the observations at 30 points: linear interpolation over latent ODE."""
    linear, latent = (
        by_seed(tables["forecasts"], arm="latent_ode", points=30, metric=m) for m in ("between_linear", "between")
    )
    return replicates(over(linear, latent))


# Events
def _intensity(metric: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(by_seed(tables["intensities"], metric=metric))

    statistic.__doc__ = says
    return statistic


intensity_correlation = _intensity("correlation", "Correlation of the fitted intensity with the true one.")
intensity_correlation_other = _intensity("correlation_other", "Control: correlation with another seed's intensity.")
trained_likelihood_error = _intensity("quadrature_gap", "Fitted process: log-likelihood against quadrature, nats.")


def events_information(tables: Tables) -> pa.Table:
    """Gate: log-likelihood of the true intensity less that of the best constant one, nats."""
    truth, constant = (
        by_seed(tables["intensities"], metric=m) for m in ("true_log_likelihood", "constant_log_likelihood")
    )
    return replicates(minus(truth, constant))
