"""The figures show what their captions promise."""

from __future__ import annotations

import numpy as np
import pytest
from tests.examples import tables
from tests.examples.head_pruning import KEPT

from restudy.studies.head_pruning import figures
from restudy.studies.head_pruning.statistics import of_text
from restudy.tables import with_column

TABLES = tables("head_pruning")


def test_relation_bars_are_the_held_out_accuracies() -> None:
    axis = figures.relations(TABLES).axes[0]
    heights = [patch.get_height() for patch in axis.patches]
    assert len(heights) == 3 * 8
    trained, controls = np.array(heights[:8]), np.array(heights[8:])
    assert sorted(trained > 0.7) == [False] * 4 + [True] * 4 and controls.max() < 0.3


def test_surviving_heads_are_filled() -> None:
    axis = figures.functions(TABLES).axes[0]
    filled = {
        (round(line.get_ydata()[0]) - 1, round(line.get_xdata()[0]))
        for line in axis.lines
        if line.get_markerfacecolor() != "none"
    }
    assert filled == KEPT


def test_rare_looks_are_those_of_the_most_relevant_head() -> None:
    axis = figures.rare(of_text(TABLES)).axes[2]
    heights = np.array([patch.get_height() for patch in axis.patches]).reshape(2, 3)
    assert heights[:, 0] == pytest.approx(0.7, abs=0.03), "the head that looks at rare tokens is the relevant one"
    assert heights[:, 1:] == pytest.approx(0.13, abs=0.03)


def test_chance_is_that_of_the_counted_frequencies() -> None:
    own = of_text(TABLES)
    rare = own["rare"]
    permuted = np.array(rare["frequencies"].to_pylist()) == "permuted"
    expected = np.where(permuted, 500.0, rare["expected"].to_numpy())
    axis = figures.rare({**own, "rare": with_column(rare, "expected", expected)}).axes[2]
    levels = [line.get_ydata()[0] for line in axis.lines if line.get_linestyle() == "-"]
    assert levels == pytest.approx([0.065, 0.13])
