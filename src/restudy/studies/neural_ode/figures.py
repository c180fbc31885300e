"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.parts import (
    GUIDE,
    Names,
    band,
    dots,
    each_line,
    legend_below,
    over_seeds,
    panels,
    picture,
    plus_minus,
    table_figure,
    ticks_at,
)
from restudy.plotting.style import COLOURS
from restudy.tables import Tables, by_seed, levels, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETS = Names(
    {
        "odenet": "ODE-Net",
        "rknet": "RK-Net",
        "resnet6": "ResNet, 6 blocks",
        "tied6": "tied ResNet, 6 steps",
        "mlp": "one hidden layer",
        "plain6": "plain, 6 blocks",
        "plain12": "plain, 12 blocks",
        "resnet12": "ResNet, 12 blocks",
    }
)
FLOWS = Names({"cnf": "continuous flow", "nf": "planar flow, same steps", "nf_long": "planar flow, same CPU time"})
FORECASTERS = Names(
    {"latent_ode": "latent ODE", "rnn": "RNN", "rnn_gaps": "RNN, time gaps", "gru_gaps": "GRU, time gaps"}
)
METHODS = Names(
    {
        "adjoint": "adjoint",
        "equations": "adjoint, written out",
        "seminorm": "adjoint, seminorm",
        "backprop": "backpropagation",
    }
)
SOLVERS = {"dopri5": "dopri5", "dopri8": "dopri8", "bosh3": "bosh3", "scipy": "SciPy RK45"}
LOSSES = (("odenet", "rknet", "resnet6", "tied6", "mlp"), ("plain6", "plain12", "resnet6", "resnet12"))


def _values(rows: pa.Table, **columns: object) -> Any:
    return where(rows, **columns)["value"].to_numpy()


def networks(tables: Tables) -> Figure:
    """Table 1: one row per network."""
    training = tables["training"]
    rows = []
    for arm in NETS.present(training, "arm"):
        evaluations = _values(training, arm=arm, metric="forward_mean")
        counts = f"{evaluations.mean():.1f}" if len(evaluations) else "-"
        if arm == "odenet":
            counts += f" / {_values(training, arm=arm, metric='backward_mean').mean():.1f}"
        rows.append(
            [
                NETS[arm],
                plus_minus(100 * _values(training, arm=arm, metric="test_error"), 1),
                f"{_values(training, arm=arm, metric='parameters').mean():,.0f}",
                plus_minus(_values(training, arm=arm, metric="train_loss")),
                counts,
            ]
        )
    return table_figure(["network", "test error, %", "parameters", "train loss, nats", "evaluations"], rows, 0.26)


def training(tables: Tables) -> Figure:
    """Train loss by step in two panels."""
    curves = tables["curves"]
    with panels(2.9, 1, 2, sharey=True) as (drawn, axes):
        for axis, arms in zip(axes[0], LOSSES, strict=True):
            for arm in [name for name in NETS.present(curves, "arm") if name in arms]:
                band(axis, over_seeds(curves, "step", arm=arm, metric="loss"), NETS.styles[arm], NETS[arm], marker="")
            axis.set(xlabel="step")
            axis.legend(fontsize=7)
        axes[0, 0].set_ylabel("train loss, nats")
    return drawn


def solver(tables: Tables) -> Figure:
    """Figure 3's panels, evaluations against the tolerance in the place of time against evaluations."""
    tolerances, ode = tables["tolerances"], where(tables["curves"], arm="odenet")
    with panels(4.6, 2, 2) as (drawn, axes):
        counted = each_line(tolerances, "seed", "tolerance", metric="evaluations")
        errors = each_line(tolerances, "seed", "tolerance", metric="state_error")
        for (seed, loose, counts), (_, _, error) in zip(counted, errors, strict=True):
            axes[0, 0].plot(counts, error, "o-", markersize=3, linewidth=0.7, label=f"seed {seed}")
            axes[0, 1].plot(loose, counts, "o-", markersize=3, linewidth=0.7)
        axes[0, 0].set(xscale="log", yscale="log", xlabel="evaluations", ylabel="relative error of z(1)")
        axes[0, 1].set(xscale="log", yscale="log", xlabel="tolerance", ylabel="evaluations")
        for axis in (axes[0, 0].xaxis, axes[0, 1].yaxis):
            axis.set_minor_formatter("")
        axes[0, 0].legend(fontsize=6)
        forward, backward = (each_line(ode, "seed", "step", metric=metric) for metric in ("forward", "backward"))
        for (_, _, there), (_, _, back) in zip(forward, backward, strict=True):
            axes[1, 0].plot(there, back, ".", alpha=0.5)
        top = max(axes[1, 0].get_xlim()[1], 1.0)
        for ratio, name in ((1.0, "equal"), (0.5, "half")):
            axes[1, 0].plot([0, top], [0, ratio * top], **GUIDE)
            axes[1, 0].annotate(name, (top, ratio * top), fontsize=7, ha="right")
        axes[1, 0].set(xlabel="forward evaluations", ylabel="backward evaluations")
        band(axes[1, 1], over_seeds(ode, "step", metric="forward"), NETS.styles["odenet"], marker="")
        axes[1, 1].set(xlabel="step", ylabel="forward evaluations")
    return drawn


def exchange(tables: Tables) -> Figure:
    """Accuracies and logits of trained nets under other solvers."""
    table = tables["exchanges"]
    rows = []
    for solver, name in SOLVERS.items():
        found = where(table, arm="odenet", solver=solver)
        distance = _values(found, metric="logit_distance")
        accuracy = plus_minus(100 * _values(found, metric="exact_accuracy"), 2)
        rows.append(["ODE-Net", f"{name}, 1e-6", accuracy, f"{distance.max():.1e}" if len(distance) else "-"])
    for arm in ("odenet", "tied6"):
        steps = where(table, arm=arm, metric="accuracy")
        for solver in sorted(set(steps["solver"].to_pylist()), key=lambda text: int(text.split("-")[1])):
            accuracy = plus_minus(100 * _values(steps, solver=solver), 2)
            rows.append([NETS[arm], f"{solver.replace('-', ', ')} steps", accuracy, "-"])
    for norm in ("norm", "seminorm"):
        ratio = plus_minus(_values(table, solver=norm, metric="backward_ratio"), 2)
        rows.append(["RK-Net", f"backward / forward, {norm}", ratio, "-"])
    return table_figure(["network", "solver", "accuracy, % (or ratio)", "largest logit distance"], rows, 0.2)


def gradients(tables: Tables) -> Figure:
    """Error against tolerance by method, and the gap of fixed-step methods."""
    rows = tables["gradients"]
    fixed = {"euler": "Euler", "midpoint": "midpoint", "rk4": "Runge-Kutta"}
    with panels(2.9, 1, 2, width_ratios=(2, 1)) as (drawn, axes):
        left, right = axes[0]
        for method, name in METHODS.items():
            for problem, x, y in each_line(rows, "problem", "tolerance", "error", method=method):
                left.plot(x, y, label=name if problem == 0 else None, **METHODS.styled(method, linewidth=0.8))
        left.set(xscale="log", yscale="log", xlabel="tolerance", ylabel="relative error of the gradient")
        left.legend(fontsize=7)
        for place, method in enumerate(fixed):
            dots(right, place, where(rows, method=method)["error"].to_pylist(), marker="o", color=COLOURS[0])
        right.set_xticks(range(3), [*fixed.values()], fontsize=7)
        right.set(yscale="log", ylabel="adjoint against discrete gradient", xlim=(-0.5, 2.5))
    return drawn


def memory(tables: Tables) -> Figure:
    """Saved bytes against steps."""
    with panels(2.6) as (drawn, axes):
        for method in ("adjoint", "backprop"):
            for _, x, y in each_line(tables["memory"], "method", "steps", "bytes", method=method):
                axes[0, 0].plot(x, y, label=METHODS[method], **METHODS.styles[method])
        axes[0, 0].set(xscale="log", yscale="log", xlabel="steps of the solver", ylabel="saved bytes")
        axes[0, 0].legend()
    return drawn


def euler(tables: Tables) -> Figure:
    """Distance of n Euler steps to the solution."""
    with panels(2.6) as (drawn, axes):
        axis = axes[0, 0]
        for problem, x, y in each_line(tables["refinement"], "problem", "steps", "distance"):
            axis.plot(x, y, "o-", label=f"field {problem}")
        guide = np.array([x[0], x[-1]])
        axis.plot(guide, 0.5 * y[0] * guide[0] / guide, label="slope -1", **GUIDE | {"linewidth": 1.4})
        axis.set(xscale="log", yscale="log", xlabel="Euler steps on [0, 1]", ylabel="relative distance")
        axis.legend(fontsize=7)
    return drawn


def divergence(tables: Tables, target: str = "crescents", width: int = 8) -> Figure:
    """KL against size, and by step at one size."""
    rows = where(tables["densities"], target=target, metric="kl")
    curves = where(tables["density_curves"], target=target, width=width, metric="kl")
    with panels(2.8, 1, 2) as (drawn, axes):
        left, right = axes[0]
        for place, arm in enumerate(FLOWS.present(rows, "arm")):
            x, mean, half = over_seeds(rows, "width", arm=arm)
            left.errorbar(x * (1 + 0.04 * (place - 1)), mean, half, label=FLOWS[arm], capsize=2, **FLOWS.styles[arm])
            steps, mean, _ = over_seeds(curves, "step", arm=arm)
            right.plot(steps, mean, label=FLOWS[arm], **FLOWS.styled(arm, marker=""))
        left.set(xscale="log", xlabel="units or layers", ylabel="KL divergence, nats", ylim=(0, None))
        ticks_at(left, levels(rows, "width"))
        right.set(xscale="log", xlabel="step", ylim=(0, 3))
        left.legend(fontsize=7)
    return drawn


def densities(tables: Tables) -> Figure:
    """Learned densities of seed 0, one panel per flow at its largest size."""
    order = [*FLOWS]
    largest: dict[tuple[str, str], Any] = {}
    for row in sorted(tables["density_panels"].to_pylist(), key=lambda row: row["width"]):
        largest[row["target"], row["arm"]] = row
    keys = sorted(largest, key=lambda key: (key[0] not in ("crescents", "wave"), key[0], order.index(key[1])))
    columns = max(1, len(keys))
    with panels(1.1 + 6.2 / columns, 1, columns) as (drawn, axes):
        for axis, (target, arm) in zip(axes[0], keys, strict=False):
            row = largest[target, arm]
            axis.imshow(picture(row), origin="lower", cmap="viridis")
            axis.set_title(f"{target}, {row['width']}\n{FLOWS[arm]}", fontsize=7)
            axis.set_axis_off()
    return drawn


def spirals(tables: Tables) -> Figure:
    """Held-out spirals above, their latent trajectories below."""
    few = min(tables["spiral_paths"]["points"].to_pylist())
    rows = where(tables["spiral_paths"], points=few)

    def path(number: int, arm: str, kind: str) -> Any:
        (row,) = where(rows, arm=arm, spiral=number, kind=kind).to_pylist()
        return np.array([row["first"], row["second"]])

    numbers = levels(rows, "spiral")
    with panels(4.0, 2, len(numbers)) as (drawn, axes):
        for column, number in enumerate(numbers):
            above, below = axes[:, column]
            truth, found = path(number, "latent_ode", "truth"), path(number, "latent_ode", "predicted")
            half = truth.shape[1] // 2
            above.plot(*truth, color="0.7", linewidth=2.5, label="truth")
            above.plot(*path(number, "latent_ode", "observed"), "k.", markersize=2.5, label="observed")
            above.plot(*found[:, :half], color=COLOURS[0], label="latent ODE")
            above.plot(*found[:, half:], color=COLOURS[0], linestyle=":", label="beyond the window")
            if "gru_gaps" in rows["arm"].to_pylist():
                above.plot(
                    *path(number, "gru_gaps", "predicted"), color=COLOURS[1], linewidth=0.9, label="GRU, time gaps"
                )
            span = np.abs(truth).max() * 1.3
            above.set(xlim=(-span, span), ylim=(-span, span), xticks=[], yticks=[], aspect="equal")
            latent = path(number, "latent_ode", "latent")
            below.plot(*latent[:, :half], color=COLOURS[0])
            below.plot(*latent[:, half:], color=COLOURS[0], linestyle=":")
            below.set(xlabel="z1", ylabel="z2" if column == 0 else "")
        legend_below(drawn, axes[0, 0], 5, fontsize=7)
    return drawn


def errors(tables: Tables) -> Figure:
    """Table 2: errors after the window by model and number of observations."""
    table = tables["forecasts"]
    sizes = levels(table, "points")
    arms = FORECASTERS.present(table, "arm")
    lines = [(FORECASTERS[arm], arm, "future") for arm in arms]
    lines += [
        ("last observation repeated", arms[0], "future_of_last"),
        ("between observations: latent ODE", "latent_ode", "between"),
        ("between observations: linear interpolation", "latent_ode", "between_linear"),
    ]
    rows = [
        [name, *(plus_minus(_values(table, arm=arm, points=size, metric=metric)) for size in sizes)]
        for name, arm, metric in lines
    ]
    return table_figure(["error after the window", *(f"{size} points" for size in sizes)], rows, 0.4)


def intensity(tables: Tables) -> Figure:
    """One panel per seed: fitted and true intensity, events as ticks."""
    curves = tables["intensity_curves"]
    seeds = levels(curves)
    correlations = by_seed(tables["intensities"], metric="correlation")
    with panels(2.2, 1, len(seeds), sharey=True) as (drawn, axes):
        for axis, seed in zip(axes[0], seeds, strict=True):
            found = {row["kind"]: row for row in where(curves, seed=seed).to_pylist()}
            axis.plot(found["true"]["time"], found["true"]["values"], color="0.6", linewidth=2.2, label="true")
            learned = FORECASTERS.styled("latent_ode", marker="")
            axis.plot(found["fitted"]["time"], found["fitted"]["values"], label="learned", **learned)
            axis.plot(found["events"]["time"], np.zeros(len(found["events"]["time"])), "k|", markersize=5)
            axis.set_title(f"seed {seed}: r = {correlations[seed]:.2f}", fontsize=8)
            axis.set(xlabel="time")
        axes[0, 0].set_ylabel("events per unit of time")
        axes[0, 0].legend(fontsize=6)
    return drawn
