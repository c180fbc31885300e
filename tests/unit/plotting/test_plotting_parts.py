"""Parts of figures: what stands in the axes afterwards, and that the bytes are those of the plain calls."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

from restudy.plotting.parts import (
    Band,
    Names,
    band,
    bare,
    beside,
    cell_texts,
    dots,
    full_colour,
    heat_map,
    image_grid,
    interval,
    legend_below,
    mean_mark,
    outer_labels,
    panels,
    picture,
    table_figure,
    ticks_at,
)
from restudy.plotting.save import figure_bytes
from restudy.plotting.style import COLUMN_WIDTH, figure, series, style

METHODS = Names({"rb": "RB", "plain": "REINFORCE", "exact": "all summed"})
CURVE = Band(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 2.0]), np.array([0.5, 0.0, 1.0]))


def svg(drawn: Figure) -> bytes:
    return figure_bytes(drawn)["svg"]


def test_names_keep_their_order_and_styles() -> None:
    table = pa.table({"arm": ["exact", "unknown", "rb", "exact"]})
    assert METHODS.present(table, "arm") == ["rb", "exact"]
    assert METHODS.styles == series(["rb", "plain", "exact"])
    assert METHODS.styled("plain", marker="")["marker"] == ""
    assert METHODS.styles["plain"]["marker"] != "", "a change must not reach the style itself"


def test_band_draws_what_the_plain_calls_draw() -> None:
    with panels(2.0, 1, 2, sharey=True) as (drawn, axes):
        band(axes[0, 0], CURVE, METHODS.styles["rb"], METHODS["rb"], markersize=3)
        legend_below(drawn, axes[0, 0], 4, fontsize=7)
    with style():
        plain, (axes,) = figure(2.0, columns=2, sharey=True)
        look = series(list(METHODS))["rb"]
        axes[0].plot([1, 2, 3], [1, 4, 2], label="RB", markersize=3, **look)
        axes[0].fill_between([1, 2, 3], [0.5, 4, 1], [1.5, 4, 3], alpha=0.12, color=look["color"], linewidth=0)
        plain.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    assert svg(drawn) == svg(plain)


def test_an_empty_band_leaves_no_legend_entry() -> None:
    with panels(2.0) as (_, axes):
        band(axes[0, 0], Band.of([], []), METHODS.styles["rb"], "RB")
    assert axes[0, 0].get_legend_handles_labels() == ([], [])


@pytest.mark.parametrize("across", [False, True])
def test_dots_and_mean_stand_at_their_place(across: bool) -> None:
    sample = {0: 1.0, 1: 2.0, 2: 6.0}
    with panels(2.0) as (_, axes):
        dots(axes[0, 0], 4.0, sample, spread=0.1, across=across, color="black")
        mean_mark(axes[0, 0], 4.0, sample, across=across, color="black")
    points, centre = axes[0, 0].lines[:2]
    place, value = (1, 0) if across else (0, 1)
    assert np.allclose(points.get_xydata()[:, place], [3.9, 4.0, 4.1])
    assert points.get_xydata()[:, value].tolist() == [1.0, 2.0, 6.0]
    mean, half = interval(sample)
    assert centre.get_xydata()[0, [place, value]].tolist() == [4.0, mean]
    ends = axes[0, 0].collections[0].get_segments()[0][:, value]
    assert np.allclose(sorted(ends), [mean - half, mean + half])


def test_one_dot_stands_on_its_place() -> None:
    with panels(2.0) as (_, axes):
        dots(axes[0, 0], 2.0, [5.0], spread=0.1)
    assert axes[0, 0].lines[0].get_xydata().tolist() == [[2.0, 5.0]]


def test_beside_is_centred() -> None:
    assert beside(1, 0.3).tolist() == [0.0]
    assert np.allclose(beside(2, 0.4), [-0.2, 0.2]) and np.allclose(beside(3, 0.26), [-0.26, 0, 0.26])


def test_labels_and_ticks() -> None:
    with panels(3.0, 2, 2) as (_, axes):
        outer_labels(axes, "step", "loss")
        ticks_at(axes[0, 0], [1, 5, 50])
        bare(axes[1:, 1])
    assert [a.get_xlabel() for a in axes.flat] == ["", "", "step", "step"]
    assert [a.get_ylabel() for a in axes.flat] == ["loss", "", "loss", ""]
    assert [t.get_text() for t in axes[0, 0].get_xticklabels()] == ["1", "5", "50"]
    assert [a.axison for a in axes.flat] == [True, True, True, False]


def test_pictures_are_read_row_by_row() -> None:
    assert picture({"values": [1, 2, 3, 4, 5, 6], "height": 2, "width": 3}).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert picture({"values": [1, 2, 3, 4, 5, 6], "side": 3}).shape == (3, 2)


def test_full_colour_ignores_outliers_and_zero_maps() -> None:
    values = np.linspace(-1, 1, 1001)
    values[500] = 1e6
    scaled = full_colour(values)
    assert np.mean(np.abs(scaled) <= 1) == pytest.approx(0.99, abs=0.002)
    assert not full_colour(np.zeros(5)).any()
    assert full_colour(np.array([0.0] * 999 + [-4.0])).min() == -1, "a map of one pixel takes its largest value"


def test_image_grid_labels_rows_and_columns() -> None:
    with image_grid(["first", "second"], ["input", "map", "edges"], left=1.0, top=0.4) as (drawn, axes):
        axes[1, 2].imshow(np.eye(4))
    assert axes.shape == (2, 3)
    assert [a.get_ylabel() for a in axes[:, 0]] == ["first", "second"]
    assert [a.get_title() for a in axes[0]] == ["input", "map", "edges"]
    assert np.allclose(drawn.get_size_inches(), [COLUMN_WIDTH, 2 * (COLUMN_WIDTH - 1.0) / 3 + 0.4])
    assert not any(spine.get_visible() for a in axes.flat for spine in a.spines.values())


def test_heat_map_writes_numbers_into_their_cells() -> None:
    values = np.array([[0.1, 0.9, 0.5], [0.2, 0.3, 0.4]])
    with panels(2.0) as (_, axes):
        axis = axes[0, 0]
        image = heat_map(axis, values, ["up", "low"], ["a", "b", "c"], fontsize=6, vmin=0, vmax=1)
        cell_texts(axis, values, "{:.1f}".format, lambda value: "white" if value < 0.5 else "black")
    assert image.get_clim() == (0, 1)
    assert [t.get_text() for t in axis.get_xticklabels()] == ["a", "b", "c"]
    assert [t.get_text() for t in axis.get_yticklabels()] == ["up", "low"]
    assert {t.get_position(): (t.get_text(), t.get_color()) for t in axis.texts}[1, 0] == ("0.9", "black")
    assert [t.get_text() for t in axis.texts] == ["0.1", "0.9", "0.5", "0.2", "0.3", "0.4"]


def test_heat_map_without_names_has_no_ticks() -> None:
    with panels(2.0) as (_, axes):
        heat_map(axes[0, 0], np.eye(3))
    assert len(axes[0, 0].get_xticks()) == len(axes[0, 0].get_yticks()) == 0


def test_table_figure_holds_its_cells() -> None:
    drawn = table_figure(["network", "error", "loss"], [["ODE-Net", "1.0", "-"], ["ResNet", "2.0", "0.1"]], first=0.5)
    cells = drawn.axes[0].tables[0].get_celld()
    texts = [[cells[row, column].get_text().get_text() for column in range(3)] for row in range(3)]
    assert texts == [["network", "error", "loss"], ["ODE-Net", "1.0", "-"], ["ResNet", "2.0", "0.1"]]
    assert [cells[0, column].get_width() for column in range(3)] == [0.5, 0.25, 0.25]
