"""Figures of one model's probes, from their tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.plotting.style import COLOURS, figure, series, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def landscape_figure(landscape: pa.Table, probes: pa.Table) -> Figure:
    """Range of the loss and of the gradient's change over the probed lengths, and effective smoothness, by step."""
    steps = sorted(set(landscape["step"].to_pylist()))
    with style():
        drawn, axes = figure(2.6, columns=3)
        for axis, column, title in zip(
            axes[0], ("loss", "gradient_change"), ("loss along the gradient", "gradient's change"), strict=False
        ):
            each = [landscape.filter(pc.equal(landscape["step"], s))[column].to_numpy() for s in steps]
            low, high = ([float(pick(values)) for values in each] for pick in (np.min, np.max))
            axis.fill_between(steps, low, high, alpha=0.3, color=COLOURS[0], linewidth=0)
            axis.plot(steps, high, marker="o", color=COLOURS[0])
            axis.plot(steps, low, color=COLOURS[0], linewidth=0.8)
            axis.set(title=title, xlabel="step")
        rows = probes.filter(pc.equal(probes["metric"], "effective_smoothness"))
        axes[0, 2].plot(rows["step"].to_numpy(), rows["value"].to_numpy(), marker="o", color=COLOURS[1])
        axes[0, 2].set(title="effective smoothness", xlabel="step")
    return drawn


def shift_figure(probes: pa.Table) -> Figure:
    """Cosine and distance of each measured layer's gradient before and after the step of the layers below."""
    layers = list(dict.fromkeys(name for name in probes["layer"].to_pylist() if name))
    looks = series(layers)
    with style():
        drawn, axes = figure(2.6, columns=2)
        for axis, metric, title in zip(axes[0], ("shift_cosine", "shift_l2"), ("cosine", "distance"), strict=True):
            rows = probes.filter(pc.equal(probes["metric"], metric))
            for layer in layers:
                mine = rows.filter(pc.equal(rows["layer"], layer))
                axis.plot(mine["step"].to_numpy(), mine["value"].to_numpy(), label=layer, **looks[layer])
            axis.set(title=title, xlabel="step")
        if layers:
            axes[0, 0].legend()
    return drawn
