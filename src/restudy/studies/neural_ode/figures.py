"""Figures of the trained classifiers, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.neural_ode.drawing import LOOKS, NETS, over_seeds, present, shown, table_figure
from restudy.studies.neural_ode.tidy import series, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
PANELS = (("odenet", "rknet", "resnet6", "tied6", "mlp"), ("plain6", "plain12", "resnet6", "resnet12"))


def _seeds(rows: pa.Table) -> list[int]:
    return sorted(set(rows["seed"].to_pylist()))


def network_table(tables: Tables) -> Figure:
    """Table 1: one row per network."""
    training = tables["training"]
    rows = []
    for arm in present(training, NETS):

        def values(metric: str, arm: str = arm) -> Any:
            return where(training, arm=arm, metric=metric)["value"].to_numpy()

        evaluations = f"{values('forward_mean').mean():.1f}" if len(values("forward_mean")) else "-"
        backward = f" / {values('backward_mean').mean():.1f}" if arm == "odenet" else ""
        rows.append(
            [NETS[arm], shown(100 * values("test_error"), 1), f"{values('parameters').mean():,.0f}"]
            + [shown(values("train_loss")), evaluations + backward]
        )
    with style():
        titles = ["network", "test error, %", "parameters", "train loss, nats", "evaluations"]
        return table_figure(titles, rows, 0.26)


def training_curves(tables: Tables) -> Figure:
    """Train loss by step in two panels."""
    curves = tables["curves"]
    with style():
        drawn, axes = figure(2.9, columns=2, sharey=True)
        for axis, arms in zip(axes[0], PANELS, strict=True):
            for arm in [name for name in present(curves, NETS) if name in arms]:
                _band(axis, *over_seeds(curves, "step", arm=arm, metric="loss"), arm)
            axis.set(xlabel="step")
            axis.legend(fontsize=7)
        axes[0, 0].set_ylabel("train loss, nats")
    return drawn


def _band(axis: Axes, x: Any, mean: Any, half: Any, arm: str) -> None:
    look = {**LOOKS[arm], "marker": ""}
    axis.plot(x, mean, label=NETS[arm], **look)
    axis.fill_between(x, mean - half, mean + half, alpha=0.12, color=look["color"], linewidth=0)


def solver_panels(tables: Tables) -> Figure:
    """Figure 3's panels, evaluations against the tolerance in the place of time against evaluations."""
    tolerances, curves = tables["tolerances"], tables["curves"]
    with style():
        drawn, axes = figure(4.6, rows=2, columns=2)
        for seed in _seeds(tolerances):
            loose, counts = series(tolerances, "tolerance", seed=seed, metric="evaluations")
            _, errors = series(tolerances, "tolerance", seed=seed, metric="state_error")
            axes[0, 0].plot(counts, errors, "o-", markersize=3, linewidth=0.7, label=f"seed {seed}")
            axes[0, 1].plot(loose, counts, "o-", markersize=3, linewidth=0.7)
        axes[0, 0].set(xscale="log", yscale="log", xlabel="evaluations", ylabel="relative error of z(1)")
        axes[0, 1].set(xscale="log", yscale="log", xlabel="tolerance", ylabel="evaluations")
        for axis in (axes[0, 0].xaxis, axes[0, 1].yaxis):
            axis.set_minor_formatter("")
        axes[0, 0].legend(fontsize=6)
        ode = where(curves, arm="odenet")
        for seed in _seeds(ode):
            _, forward = series(ode, "step", seed=seed, metric="forward")
            _, backward = series(ode, "step", seed=seed, metric="backward")
            axes[1, 0].plot(forward, backward, ".", alpha=0.5)
        top = max(axes[1, 0].get_xlim()[1], 1.0)
        for ratio, name in ((1.0, "equal"), (0.5, "half")):
            axes[1, 0].plot([0, top], [0, ratio * top], "--", color="0.4", linewidth=0.8)
            axes[1, 0].annotate(name, (top, ratio * top), fontsize=7, ha="right")
        axes[1, 0].set(xlabel="forward evaluations", ylabel="backward evaluations")
        _band(axes[1, 1], *over_seeds(ode, "step", metric="forward"), "odenet")
        axes[1, 1].set(xlabel="step", ylabel="forward evaluations")
    return drawn


def exchange_table(tables: Tables) -> Figure:
    """Accuracies and logits of trained nets under other solvers."""
    table = tables["exchanges"]
    names = {"dopri5": "dopri5", "dopri8": "dopri8", "bosh3": "bosh3", "scipy": "SciPy RK45"}
    rows = []
    for solver, name in names.items():
        found = where(table, arm="odenet", solver=solver)
        accuracy = 100 * where(found, metric="exact_accuracy")["value"].to_numpy()
        distance = where(found, metric="logit_distance")["value"].to_numpy()
        rows.append(["ODE-Net", f"{name}, 1e-6", shown(accuracy, 2), f"{distance.max():.1e}" if len(distance) else "-"])
    for arm in ("odenet", "tied6"):
        steps = where(table, arm=arm, metric="accuracy")
        for solver in sorted(set(steps["solver"].to_pylist()), key=lambda text: int(text.split("-")[1])):
            accuracy = 100 * where(steps, solver=solver)["value"].to_numpy()
            rows.append([NETS[arm], f"{solver.replace('-', ', ')} steps", shown(accuracy, 2), "-"])
    for norm in ("norm", "seminorm"):
        ratio = where(table, solver=norm, metric="backward_ratio")["value"].to_numpy()
        rows.append(["RK-Net", f"backward / forward, {norm}", shown(ratio, 2), "-"])
    with style():
        return table_figure(["network", "solver", "accuracy, % (or ratio)", "largest logit distance"], rows, 0.2)
