"""Figures of the flows. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.neural_ode.drawing import FLOWS, LOOKS, over_seeds, present
from restudy.studies.neural_ode.tidy import where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
TARGET, WIDTH = "crescents", 8


def divergence(tables: Tables) -> Figure:
    """KL against size, and by step at one size."""
    rows = where(tables["densities"], target=TARGET, metric="kl")
    curves = where(tables["density_curves"], target=TARGET, width=WIDTH, metric="kl")
    with style():
        drawn, axes = figure(2.8, columns=2)
        left, right = axes[0]
        arms = present(rows, FLOWS)
        for place, arm in enumerate(arms):
            x, mean, half = over_seeds(rows, "width", arm=arm)
            apart = x * (1 + 0.04 * (place - 1))
            left.errorbar(apart, mean, half, label=FLOWS[arm], capsize=2, **LOOKS[arm])
            steps, mean, _ = over_seeds(curves, "step", arm=arm)
            right.plot(steps, mean, label=FLOWS[arm], **{**LOOKS[arm], "marker": ""})
        sizes = sorted(set(rows["width"].to_pylist()))
        left.set(xscale="log", xlabel="units or layers", ylabel="KL divergence, nats", ylim=(0, None))
        left.set_xticks(sizes, [str(size) for size in sizes])
        left.minorticks_off()
        right.set(xscale="log", xlabel="step", ylim=(0, 3))
        left.legend(fontsize=7)
    return drawn


def panels(tables: Tables) -> Figure:
    """Learned densities of seed 0, one panel per flow at its largest size."""
    rows = sorted(
        tables["density_panels"].to_pylist(), key=lambda r: (r["target"], [*FLOWS].index(r["arm"]), -r["width"])
    )
    chosen = {(row["target"], row["arm"]): row for row in reversed(rows)}
    ordered = sorted(chosen, key=lambda key: (key[0] not in ("crescents", "wave"), key[0], [*FLOWS].index(key[1])))
    with style():
        columns = max(1, len(ordered))
        drawn, axes = figure(1.1 + 6.2 / columns, columns=columns)
        for axis, key in zip(axes[0], ordered, strict=False):
            row = chosen[key]
            picture = np.array(row["values"]).reshape(row["side"], row["side"])
            axis.imshow(picture, origin="lower", cmap="viridis")
            axis.set_title(f"{key[0]}, {row['width']}\n{FLOWS[key[1]]}", fontsize=7)
            axis.set_axis_off()
    return drawn
