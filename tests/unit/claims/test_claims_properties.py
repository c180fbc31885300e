"""Properties that hold for any replicates."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from restudy.claims import judge

from .claims_material import claim, table, verdict

numbers = st.floats(-10, 10, allow_nan=False).map(lambda v: round(v, 4))
samples = st.lists(numbers, min_size=5, max_size=12)
sizes = st.floats(0.01, 5).map(lambda v: round(v, 3))


def spread(values: list[float]) -> bool:
    return float(np.ptp(values)) > 1e-3


def on_edge(v, sesoi: float) -> bool:
    """True where a comparison would be settled by rounding."""
    scale = 1e-9 * (abs(v.ci_low) + abs(v.ci_high) + sesoi)
    return min(abs(v.ci_low), abs(v.ci_high), abs(v.ci_high - sesoi), abs(v.estimate - sesoi)) < scale


@settings(max_examples=200, deadline=None)
@given(samples, sizes, st.floats(1e-3, 1e3))
def test_scaling_everything_changes_no_verdict(values, sesoi, factor) -> None:
    assume(spread(values))
    one = verdict(values, sesoi=sesoi)
    assume(not on_edge(one, sesoi))
    two = verdict(np.array(values) * factor, sesoi=sesoi * factor)
    assert (one.verdict, one.reason, one.seeds_needed) == (two.verdict, two.reason, two.seeds_needed)


@settings(max_examples=200, deadline=None)
@given(samples, sizes, st.randoms(use_true_random=False))
def test_permuting_changes_nothing(values, sesoi, random) -> None:
    order = list(range(len(values)))
    random.shuffle(order)
    rows = verdict(values, sesoi=sesoi)
    assert judge(claim(sesoi=sesoi), table(values).take(pa.array(order))) == rows  # order of rows
    shuffled = verdict([values[i] for i in order], sesoi=sesoi)  # which seed gave which value
    assert (shuffled.verdict, shuffled.ci_low, shuffled.ci_high) == (rows.verdict, rows.ci_low, rows.ci_high)


@settings(max_examples=200, deadline=None)
@given(samples, sizes)
def test_one_more_replicate_at_the_mean_never_hurts(values, sesoi) -> None:
    assume(spread(values))
    one = verdict(values, sesoi=sesoi)
    two = verdict([*values, float(np.mean(values))], sesoi=sesoi)
    assert two.ci_low >= one.ci_low - 1e-9
    if one.verdict == "reproduced" and not on_edge(one, sesoi):
        assert two.verdict == "reproduced"


@settings(max_examples=200, deadline=None)
@given(samples, sizes)
def test_mirrored_data_give_mirrored_bounds(values, sesoi) -> None:
    assume(spread(values))
    one, two = verdict(values, sesoi=sesoi), verdict(-np.array(values), sesoi=sesoi)
    assert abs(one.ci_low + two.ci_high) < 1e-9 and abs(one.ci_high + two.ci_low) < 1e-9
    assert abs(one.estimate + two.estimate) < 1e-9
    assert abs(one.prob_superiority + two.prob_superiority - 1) < 1e-12


@settings(max_examples=100, deadline=None)
@given(samples, sizes)
def test_a_larger_sesoi_never_helps(values, sesoi) -> None:
    assume(spread(values))
    if verdict(values, sesoi=2 * sesoi).verdict == "reproduced":
        assert verdict(values, sesoi=sesoi).verdict == "reproduced"


@settings(max_examples=100, deadline=None)
@given(samples)
def test_equivalence_and_inferiority_mirror(values) -> None:
    assume(spread(values))
    one = verdict(values, "no_difference", margin=1.0)
    two = verdict(-np.array(values), "no_difference", margin=1.0)
    assert one.verdict == two.verdict and abs(one.p_value - two.p_value) < 1e-9
