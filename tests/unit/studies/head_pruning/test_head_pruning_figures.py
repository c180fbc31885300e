"""Every figure draws from tables, with what it promises in it."""

from __future__ import annotations

import numpy as np
import pytest
from head_pruning_tables import KEPT, everything

from restudy.catalog import study
from restudy.studies.head_pruning import figures

TABLES = everything()
FIGURES = study("head_pruning").file.figures


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_figure_draws_from_its_declared_tables(name: str) -> None:
    declared = {table: TABLES[table] for table in FIGURES[name].tables}
    drawn = getattr(figures, FIGURES[name].function.partition(".")[2])(declared)
    drawn.canvas.draw()
    assert len(drawn.axes) >= 1 and any(axis.has_data() for axis in drawn.axes)


def test_relation_bars_are_the_held_out_accuracies() -> None:
    axis = figures.relation_bars(TABLES).axes[0]
    heights = [patch.get_height() for patch in axis.patches]
    assert len(heights) == 3 * 8
    trained, controls = np.array(heights[:8]), np.array(heights[8:])
    assert sorted(trained > 0.7) == [False] * 4 + [True] * 4 and controls.max() < 0.3


def test_surviving_heads_are_filled() -> None:
    axis = figures.function_maps(TABLES).axes[0]
    filled = {
        (round(line.get_ydata()[0]) - 1, round(line.get_xdata()[0]))
        for line in axis.lines
        if line.get_markerfacecolor() != "none"
    }
    assert filled == KEPT
