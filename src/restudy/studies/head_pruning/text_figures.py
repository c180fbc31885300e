"""The figures of real text: those of the synthetic track on the other tables, and the rare-word heads. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.plotting.style import COLOURS, figure, style
from restudy.studies.head_pruning import figures
from restudy.studies.head_pruning.drawing import dots, heat_map
from restudy.studies.head_pruning.measures import rare_rates, relevant_head
from restudy.studies.head_pruning.tidy import of_text, seeds_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]


def _on_text(drawn: Callable[[Tables], Figure]) -> Callable[[Tables], Figure]:
    def twin(tables: Tables) -> Figure:
        return drawn(of_text(tables))

    twin.__doc__ = f"{drawn.__doc__} On real text."
    return twin


importance_maps = _on_text(figures.importance_maps)
relation_bars = _on_text(figures.relation_bars)
function_maps = _on_text(figures.function_maps)
pruning_scores = _on_text(figures.pruning_scores)

_CASES = [
    ("relative", "counted", COLOURS[1], "trained"),
    ("untrained", "counted", COLOURS[8], "untrained"),
    ("relative", "permuted", COLOURS[4], "trained, permuted frequencies"),
]


def rare_looks(tables: Tables) -> Figure:
    """Looks at the two rarest tokens: every encoder head of one seed, and the most relevant head of layer 1."""
    own = of_text(tables)
    seeds = seeds_of(own["rare"])
    with style():
        drawn, axes = figure(2.3, columns=3, width_ratios=[1, 1, 2.2])
        for axis, arm in zip(axes[0, :2], ("relative", "untrained"), strict=True):
            rates, _ = rare_rates(own, arm, "counted", 2, seeds[0])
            image = heat_map(axis, rates, 0, 1)
            head = relevant_head(own, arm, seeds[0])
            axis.plot(head, 0, "o", markerfacecolor="none", markeredgecolor="white", markersize=7)
            axis.set_title("trained" if arm == "relative" else arm, fontsize=8)
            axis.set_xlabel("heads")
        axes[0, 0].set_ylabel("layer")
        drawn.colorbar(image, ax=list(axes[0, :2]), shrink=0.9, label="looks at the two rarest")
        _bars(axes[0, 2], own, seeds)
    return drawn


def _bars(axis: Axes, own: Tables, seeds: list[int]) -> None:
    for place, within in enumerate((1, 2)):
        for number, (arm, frequencies, colour, label) in enumerate(_CASES):
            found = [rare_rates(own, arm, frequencies, within, seed) for seed in seeds]
            values = [float(f[0][0, relevant_head(own, arm, s)]) for f, s in zip(found, seeds, strict=True)]
            at = place + 0.26 * (number - 1)
            axis.bar(at, np.mean(values), 0.24, color=colour, label=label if not place else None)
            dots(axis, at, values)
        chance = float(np.mean([rare_rates(own, "relative", "counted", within, seed)[1] for seed in seeds]))
        axis.plot([place - 0.42, place + 0.42], [chance, chance], color="black", label=None if place else "chance")
    axis.set_xticks([0, 1], ["the rarest token", "one of the two rarest"], fontsize=7)
    axis.set(ylabel="share of the queries", ylim=(0, 1.3), yticks=np.linspace(0, 1, 6))
    axis.legend(fontsize=6, ncols=2, loc="upper center")
