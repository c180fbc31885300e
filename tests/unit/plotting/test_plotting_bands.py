"""Means over seeds and their intervals, against plain numpy and scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from restudy.plotting.bands import OVERFLOW, Band, each_line, interval, intervals, over_seeds, plus_minus, stacked

NUMBERS = st.floats(-1e6, 1e6)
SEEDS = st.lists(st.integers(0, 30), min_size=1, max_size=10, unique=True)
PLACES = st.lists(st.integers(0, 100), min_size=1, max_size=6, unique=True)


@st.composite
def grids(draw: st.DrawFn, arms: tuple[str, ...] = ("a",)):
    """Seeds and places in rising order, one value for each seed, place and arm, and the table of them, shuffled."""
    seeds, places = sorted(draw(SEEDS)), sorted(draw(PLACES))
    keys = list(itertools.product(arms, seeds, places))
    values = dict(zip(keys, draw(st.lists(NUMBERS, min_size=len(keys), max_size=len(keys))), strict=True))
    rows = [{"arm": a, "seed": s, "step": x, "value": v} for (a, s, x), v in values.items()]
    return seeds, places, values, pa.Table.from_pylist(draw(st.permutations(rows)))


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=20).filter(lambda found: len(set(found)) > 1))
def test_interval_is_that_of_scipy(values: list[int]) -> None:
    """Integers: scipy has no interval where the deviation underflows."""
    mean, half = interval(values)
    expected = stats.t.interval(0.95, len(values) - 1, loc=np.mean(values), scale=stats.sem(values))
    assert np.allclose([mean - half, mean + half], expected, rtol=1e-9, atol=1e-6 * half)


@given(st.lists(NUMBERS, min_size=2, max_size=20))
def test_interval_keeps_the_order_of_operations(values: list[float]) -> None:
    """Figures are compared by their bytes: quantile times deviation, then divided by the root."""
    n, array = len(values), np.array(values)
    expected = stats.t.ppf(0.975, n - 1) * array.std(ddof=1) / np.sqrt(n)
    assert interval(values) == interval(dict(enumerate(values))) == (array.mean(), expected)


def test_interval_of_few_or_undefined_values() -> None:
    assert interval([2.5]) == (2.5, 0.0)
    for sample in ([], [math.nan], [1.0, math.nan], {0: 1.0, 1: math.nan, 2: 3.0}):
        assert np.isnan(interval(sample)).all()
    mean, half = intervals([[1.0, 2.0], [5.0], []])
    assert np.array_equal(mean, [1.5, 5.0, math.nan], equal_nan=True)
    assert half[1] == 0.0 and half[0] > 0 and math.isnan(half[2])
    assert [part.shape for part in intervals([])] == [(0,), (0,)]


@pytest.mark.parametrize(
    ("sample", "text"), [([], "-"), ([1.5], "1.500"), ({0: 1.0, 1: 1.0}, "1.000 ± 0.000"), ([1, 2], "1.500 ± 6.353")]
)
def test_plus_minus(sample: list[float], text: str) -> None:
    assert plus_minus(sample) == text


@settings(deadline=None)
@given(grids())
def test_over_seeds_averages_each_place(found) -> None:
    seeds, places, values, table = found
    band = over_seeds(table, "step")
    assert band.x.tolist() == places and band.x.dtype == np.float64
    for at, (mean, half) in enumerate(zip(band.mean, band.half, strict=True)):
        assert (mean, half) == interval([values["a", seed, places[at]] for seed in seeds])


@settings(deadline=None)
@given(grids(("a", "b")))
def test_minus_pairs_seeds_and_places(found) -> None:
    seeds, places, values, table = found
    band = over_seeds(table, "step", minus={"arm": "b"}, arm="a")
    expected = Band.of(places, [[values["a", s, x] - values["b", s, x] for s in seeds] for x in places])
    assert all(np.array_equal(mine, other) for mine, other in zip(band, expected, strict=True))


@settings(deadline=None)
@given(grids(), st.integers(0, 100))
def test_a_place_that_a_seed_lacks_is_undefined(found, place: int) -> None:
    seeds, places, values, table = found
    dropped = table.num_rows - 1 - place % table.num_rows
    row = table.slice(dropped, 1).to_pylist()[0]
    rest = pa.concat_tables([table.slice(0, dropped), table.slice(dropped + 1)])
    x, stack = stacked(rest, "step")
    still = set(rest["seed"].to_pylist())
    for at, step in enumerate(x):
        for line, seed in enumerate(sorted(still)):
            absent = (seed, step) == (row["seed"], row["step"])
            assert np.isnan(stack[line, at]) if absent else stack[line, at] == values["a", seed, int(step)]
    if row["seed"] in still and row["step"] in x.tolist():
        assert np.isnan(over_seeds(rest, "step").mean[x.tolist().index(row["step"])])


def test_missing_and_overflowed_values_are_undefined() -> None:
    table = pa.table({"seed": [0, 0, 0, 1, 1, 1], "step": [1, 2, 3] * 2, "loss": [1.0, None, 3.0, 2.0, 2.0, OVERFLOW]})
    _, values = stacked(table, "step", "loss")
    assert np.array_equal(values, [[1, math.nan, 3], [2, 2, math.nan]], equal_nan=True)
    assert np.array_equal(np.isnan(over_seeds(table, "step", "loss").half), [False, True, True])


def test_several_rows_of_one_seed_and_place_count_once() -> None:
    table = pa.table({"seed": [1, 0, 0, 1, 1], "step": [5, 5, 5, 5, 5], "value": [1.0, 2.0, 4.0, 6.0, 8.0]})
    places, values = stacked(table, "step")
    assert places.tolist() == [5.0] and values.tolist() == [[3.0], [5.0]]


def test_minus_leaves_places_undefined_that_the_other_lacks() -> None:
    table = pa.table({"seed": [0, 0, 0], "arm": ["a", "a", "b"], "step": [1, 2, 2], "value": [1.0, 5.0, 2.0]})
    band = over_seeds(table, "step", minus={"arm": "b"}, arm="a")
    assert np.array_equal(band.mean, [math.nan, 3.0], equal_nan=True)


def test_nothing_chosen_gives_an_empty_band() -> None:
    table = pa.table({"seed": [0], "arm": ["a"], "step": [1], "value": [1.0]})
    assert [part.shape for part in over_seeds(table, "step", arm="b")] == [(0,)] * 3
    assert list(each_line(table, "seed", "step", arm="b")) == []


@settings(deadline=None)
@given(grids())
def test_each_line_is_a_seed_in_rising_order_of_x(found) -> None:
    seeds, places, values, table = found
    lines = list(each_line(table, "seed", "step", arm="a"))
    assert [seed for seed, _, _ in lines] == seeds
    for seed, x, y in lines:
        assert x.tolist() == places and y.tolist() == [values["a", seed, place] for place in places]
