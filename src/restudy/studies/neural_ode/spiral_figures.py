"""Figures of the time series: spirals, prediction errors, intensities. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.neural_ode.drawing import FORECASTERS, LOOKS, present, shown, table_figure
from restudy.studies.neural_ode.tidy import by_seed, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]


def _path(rows: pa.Table, arm: str, spiral: int, kind: str) -> Any:
    row = where(rows, arm=arm, spiral=spiral, kind=kind).to_pylist()[0]
    return np.array([row["first"], row["second"]])


def reconstructions(tables: Tables) -> Figure:
    """Held-out spirals above, their latent trajectories below."""
    rows = tables["spiral_paths"]
    few = min(rows["points"].to_pylist())
    rows = where(rows, points=few)
    numbers = sorted(set(rows["spiral"].to_pylist()))
    with style():
        drawn, axes = figure(4.0, rows=2, columns=len(numbers))
        for column, number in enumerate(numbers):
            above, below = axes[:, column]
            truth, path = (_path(rows, "latent_ode", number, kind) for kind in ("truth", "predicted"))
            half = truth.shape[1] // 2
            above.plot(*truth, color="0.7", linewidth=2.5, label="truth")
            above.plot(*_path(rows, "latent_ode", number, "observed"), "k.", markersize=2.5, label="observed")
            above.plot(*path[:, :half], color="#0072B2", label="latent ODE")
            above.plot(*path[:, half:], color="#0072B2", linestyle=":", label="beyond the window")
            if "gru_gaps" in rows["arm"].to_pylist():
                forecast = _path(rows, "gru_gaps", number, "predicted")
                above.plot(*forecast, color="#D55E00", linewidth=0.9, label="GRU, time gaps")
            span = np.abs(truth).max() * 1.3
            above.set(xlim=(-span, span), ylim=(-span, span), xticks=[], yticks=[], aspect="equal")
            latent = _path(rows, "latent_ode", number, "latent")
            below.plot(*latent[:, :half], color="#0072B2")
            below.plot(*latent[:, half:], color="#0072B2", linestyle=":")
            below.set(xlabel="z1", ylabel="z2" if column == 0 else "")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=7)
    return drawn


def error_table(tables: Tables) -> Figure:
    """Table 2: errors after the window by model and number of observations."""
    table = tables["forecasts"]
    sizes = sorted(set(table["points"].to_pylist()))

    def line(name: str, arm: str, metric: str) -> list[str]:
        found = [where(table, arm=arm, points=size, metric=metric)["value"].to_numpy() for size in sizes]
        return [name, *(shown(values) for values in found)]

    arms = present(table, FORECASTERS)
    rows = [line(FORECASTERS[arm], arm, "future") for arm in arms]
    rows += [
        line("last observation repeated", arms[0], "future_of_last"),
        line("between observations: latent ODE", "latent_ode", "between"),
        line("between observations: linear interpolation", "latent_ode", "between_linear"),
    ]
    with style():
        return table_figure(["error after the window", *(f"{size} points" for size in sizes)], rows, 0.4)


def intensities(tables: Tables) -> Figure:
    """One panel per seed: fitted and true intensity, events as ticks."""
    curves = tables["intensity_curves"]
    seeds = sorted(set(curves["seed"].to_pylist()))
    correlations = by_seed(tables["intensities"], metric="correlation")
    with style():
        drawn, axes = figure(2.2, columns=len(seeds), sharey=True)
        for axis, seed in zip(axes[0], seeds, strict=True):
            found = {row["kind"]: row for row in where(curves, seed=seed).to_pylist()}
            axis.plot(found["true"]["time"], found["true"]["values"], color="0.6", linewidth=2.2, label="true")
            axis.plot(found["fitted"]["time"], found["fitted"]["values"], label="learned", **_line("latent_ode"))
            axis.plot(found["events"]["time"], np.zeros(len(found["events"]["time"])), "k|", markersize=5)
            axis.set_title(f"seed {seed}: r = {correlations[seed]:.2f}", fontsize=8)
            axis.set(xlabel="time")
        axes[0, 0].set_ylabel("events per unit of time")
        axes[0, 0].legend(fontsize=6)
    return drawn


def _line(name: str) -> dict[str, Any]:
    return {**LOOKS[name], "marker": ""}
