"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed; for exact statements it is the random field or case. Positive is the paper's direction.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from restudy.contrasts import Measure, Values, along, each, largest, mean, measure, median, slope
from restudy.tables import Array, Tables, levels, ordered

LOOSE, TRAINED, FINE = 1e-2, 1e-3, 1e-8

# The trained classifiers
trained = partial(mean, "training")
test_error = partial(trained, metric="test_error")
odenet = partial(trained, arm="odenet")
odenet_accuracy = 1 - test_error(arm="odenet")
resnet_accuracy = 1 - test_error(arm="resnet6")
accuracy_ode_minus_resnet = test_error(arm="resnet6") - test_error(arm="odenet")
accuracy_ode_minus_tied = test_error(arm="tied6") - test_error(arm="odenet")
parameter_excess = largest(0.0, odenet(metric="parameters") / trained(arm="resnet6", metric="parameters") - 0.5)
backward_ratio = odenet(metric="backward_mean") / odenet(metric="forward_mean")
evaluations_growth = odenet(metric="forward_late") / odenet(metric="forward_early")
train_loss = partial(trained, metric="train_loss")
plain_over_residual = train_loss(arm="plain12") / train_loss(arm="resnet12")
plain_over_residual_growth = plain_over_residual / (train_loss(arm="plain6") / train_loss(arm="resnet6"))
residual_accuracy = trained(arm="resnet12", metric="train_accuracy")

# Tolerances after training
evaluations = partial(mean, "tolerances", metric="evaluations")
accuracy_at = partial(mean, "tolerances", metric="accuracy")
error_slope_inside = 0.5 - abs(slope("tolerances", "tolerance", metric="state_error") - 1)
evaluations_reversed = along(
    "tolerances", "tolerance", lambda _, n: float((np.diff(n) > 0).sum()), "number of rises", metric="evaluations"
)
evaluations_ratio = evaluations(tolerance=FINE) / evaluations(tolerance=LOOSE)
loosening_shortfall = largest(0.0, 1.1 - evaluations(tolerance=TRAINED) / evaluations(tolerance=LOOSE))
accuracy_loose_minus_trained = accuracy_at(tolerance=LOOSE) - accuracy_at(tolerance=TRAINED)


def determination(x: Array, y: Array) -> float:
    """Return R^2 of the straight line through the points."""
    return float(np.corrcoef(x, y)[0, 1] ** 2) if len(x) > 2 else float("nan")


@measure
def time_by_evaluations(tables: Tables) -> Values:
    """R^2 of CPU time against evaluations over the tolerances (timing, this machine)."""
    found: Values = {}
    for seed in levels(tables["tolerances"]):
        x, counts = ordered(tables["tolerances"], "tolerance", seed=seed, metric="evaluations")
        y, seconds = ordered(tables["solver_timings"], "tolerance", "seconds", seed=seed)
        found[seed] = determination(counts, seconds) if list(x) == list(y) else float("nan")
    return found


# Solvers and step sizes exchanged after training
exchange = partial(mean, "exchanges")
OTHER_SOLVERS = ("dopri8", "bosh3", "scipy")


def whole_images(measure: Measure) -> Measure:
    """Round differences of accuracies, which are whole images over their number, to 9 decimals."""
    return measure.map(lambda value: round(value, 9), str(measure))


def halved(arm: str, solver: str, steps: int) -> Measure:
    """Return the change of an arm's test accuracy when the solver's step is halved, absolute."""
    accuracy = partial(exchange, arm=arm, metric="accuracy")
    return abs(accuracy(solver=f"{solver}-{steps}") - accuracy(solver=f"{solver}-{2 * steps}"))


solver_logit_distance = largest(*(exchange(arm="odenet", solver=s, metric="logit_distance") for s in OTHER_SOLVERS))
exact_accuracy = partial(exchange, arm="odenet", metric="exact_accuracy")
solver_accuracy_distance = whole_images(
    largest(*(abs(exact_accuracy(solver=s) - exact_accuracy(solver="dopri5")) for s in OTHER_SOLVERS))
)
halved_step_ode = whole_images(halved("odenet", "rk4", 8))
halved_step_tied = halved("tied6", "euler", 6)

# CPU time (timing, this machine)
seconds_a_step = partial(
    along, "train_timings", "step", lambda step, seconds: seconds[-1] / step[-1], "seconds a step", column="seconds"
)
step_time_ratio = seconds_a_step(arm="odenet") / seconds_a_step(arm="resnet6")
exponent = partial(slope, "trace_timings", "dimensions", "seconds")
determinant_exponent_excess = exponent(method="determinant") - exponent(method="trace")


def running_accuracy(tables: Tables, arm: str, seed: int) -> Array:
    """Return the mean train accuracy over windows of a tenth of the run, (steps - window + 1,)."""
    _, accuracy = ordered(tables["curves"], "step", arm=arm, seed=seed, metric="accuracy")
    width = max(1, len(accuracy) // 10)
    return np.convolve(accuracy, np.ones(width) / width, "valid")


def seconds_to(tables: Tables, arm: str, seed: int, goal: float) -> float:
    """Return CPU seconds until the running train accuracy reaches the goal, or of the whole run."""
    running = running_accuracy(tables, arm, seed)
    seconds = ordered(tables["train_timings"], "step", "seconds", arm=arm, seed=seed)[1][-len(running) :]
    there = np.flatnonzero(running >= goal)
    return float(seconds[there[0]] if len(there) else seconds[-1])


@measure
def time_to_accuracy_ratio(tables: Tables) -> Values:
    """CPU time to the train accuracy that the residual net has after nine tenths: ODE-Net over the residual net.

    Where the ODE-Net never reaches it, its whole time counts, which is too little.
    """
    found: Values = {}
    for seed in levels(tables["curves"]):
        steps = len(ordered(tables["curves"], "step", arm="resnet6", seed=seed, metric="accuracy")[1])
        running = running_accuracy(tables, "resnet6", seed)
        goal = float(running[: max(1, int(0.9 * steps) - max(1, steps // 10) + 1)].max())
        found[seed] = seconds_to(tables, "odenet", seed, goal) / seconds_to(tables, "resnet6", seed, goal)
    return found


# Densities: KL in nats to the crescents, planar flow minus continuous flow
def kl_gap(width: int, planar: str = "nf") -> Measure:
    """Return the planar flow's KL minus the continuous one's at a width (units, or layers)."""
    kl = partial(mean, "densities", target="crescents", width=width, metric="kl")
    return kl(arm=planar) - kl(arm="cnf")


kl_nf_minus_cnf = kl_gap(8)
kl_long_minus_cnf = kl_gap(8, "nf_long")  # after about as much CPU time
kl_median_gap = median(kl_gap(2), kl_gap(8), kl_gap(32))
worst_flow = partial(along, "densities", "width", lambda _, error: max(error, default=0.0), "largest", arm="cnf")
trained_mass_error = worst_flow(metric="mass_error")
trained_round_trip = worst_flow(metric="round_trip")
trained_jacobian_gap = worst_flow(metric="jacobian_gap")

# Spirals: errors of forecasts, rivals over the latent ODE
forecast = partial(mean, "forecasts")


def over_latent(arm: str, points: int) -> Measure:
    """Return the error after the window over that of the latent ODE."""
    future = partial(forecast, points=points, metric="future")
    return future(arm=arm) / future(arm="latent_ode")


rnn_over_latent_30, rnn_over_latent_50 = over_latent("rnn", 30), over_latent("rnn", 50)
gaps_over_latent_30, gaps_over_latent_50 = over_latent("rnn_gaps", 30), over_latent("rnn_gaps", 50)
gru_over_latent_30, gru_over_latent_50 = over_latent("gru_gaps", 30), over_latent("gru_gaps", 50)
ratio_shrinks = over_latent("rnn", 30) / over_latent("rnn", 100)
rnn_over_standstill = forecast(arm="rnn", points=30, metric="future") / forecast(
    arm="rnn", points=30, metric="future_of_last"
)
linear_over_latent = forecast(arm="latent_ode", points=30, metric="between_linear") / forecast(
    arm="latent_ode", points=30, metric="between"
)

# Events: a fitted intensity
intensity = partial(mean, "intensities")
intensity_correlation = intensity(metric="correlation")
intensity_correlation_other = intensity(metric="correlation_other")  # another seed's intensity
trained_likelihood_error = intensity(metric="quadrature_gap")
events_information = intensity(metric="true_log_likelihood") - intensity(metric="constant_log_likelihood")

# Exact statements: deviations per random field or case, 0 is right
identity = partial(each, "identities", ("case", "metric"))
TIMES = ("dL/dt1 by differences", "dL/dt0 by differences", "dL/dt0 closed form") + (
    "dL/dt1 of the library",
    "dL/dt0 of the library",
)
time_gradient_error = identity(claim="D1", metric=TIMES)
tied_value_error = identity(claim="O11", metric="value")
tied_gradient_error = identity(claim="O11", metric="gradient")
flow_trace_error = identity(claim="O7", metric="trace integral")
flow_mass_error = identity(claim="O7", metric="mass")
flow_round_trip = identity(claim="O7", metric="round trip")
flow_both_ways = identity(claim="O7", metric="both ways")
trace_error = identity(claim="O14", metric="trace")
determinants_taken = identity(claim="O14", metric="determinants")
likelihood_error = identity(claim="O9", metric="quadrature")
long_way_shortfall = largest(0.0, 1 - identity(claim="O14", metric="determinants of the long way"))

gradient_slope = partial(slope, "gradients", "tolerance", "error", key="problem")
finest = partial(along, "gradients", "tolerance", lambda _, error: error[0], "finest", column="error", key="problem")
adjoint_slope_shortfall = largest(0.0, 0.7 - gradient_slope(method="adjoint"))
finest_adjoint_error = finest(method="adjoint")
equations_error = finest(method="equations")


def fall(method: str, next_order: str) -> Measure:
    """Return what the fall of the gap from a method to one of higher order lacks of tenfold."""
    return 10 - finest(method=method) / finest(method=next_order)


fixed_step_gap_shortfall = largest(
    0.0, 0.01 - finest(method="euler"), fall("euler", "midpoint"), fall("midpoint", "rk4")
)


@measure
def adjoint_bytes_growth(tables: Tables) -> Values:
    """Largest over smallest number of bytes that the adjoint keeps, less 1, over all numbers of steps."""
    _, kept = ordered(tables["memory"], "steps", "bytes", method="adjoint")
    return {"rk4": float(kept.max() / kept.min() - 1)}


@measure
def backprop_bytes_bend(tables: Tables) -> Values:
    """1 - R^2 of the line through bytes against steps, backpropagation."""
    return {"rk4": 1 - determination(*ordered(tables["memory"], "steps", "bytes", method="backprop"))}


@measure
def backprop_bytes_shortfall(tables: Tables) -> Values:
    """max(0, .9 - growth of bytes over growth of steps), backpropagation."""
    steps, kept = ordered(tables["memory"], "steps", "bytes", method="backprop")
    return {"rk4": max(0.0, 0.9 - float(kept[-1] / kept[0]) / float(steps[-1] / steps[0]))}


euler_slope_error = abs(slope("refinement", "steps", "distance", key="problem") + 1)
