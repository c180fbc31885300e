"""Planning and operating characteristics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from restudy.claims import power, seeds
from restudy.claims.words import ALPHA

from .claims_material import verdict

DOCS = Path(__file__).parents[3] / "docs" / "power"


def test_seeds_needed_is_the_smallest_that_is_narrow_enough() -> None:
    from scipy import stats

    for sd in (0.3, 1.0, 2.2):
        n = seeds.seeds_needed(sd, 0.5)
        assert n is not None

        def half(k: int, sd: float = sd) -> float:
            return float(stats.t.ppf(0.95, k - 1) * sd / np.sqrt(k))

        assert half(n) <= 0.5 and (n == 5 or half(n - 1) > 0.5)
    assert seeds.seeds_needed(1.0, 0.0) is None and seeds.seeds_needed(1e6, 0.5) is None


@pytest.mark.parametrize("effect", [-1.0, 0.0, 0.8, 1.5, 2.0])
def test_simulation_follows_the_engine(effect: float) -> None:
    runs = 300
    got = power.simulate(5, effect, 1.0, runs=runs, seed=3)
    rng = np.random.default_rng([3, 5, round(1000 * (effect + 100)), 1])
    draws = rng.normal(effect, 1.0, size=(5, runs))
    words = [verdict(draws[:, i], sesoi=1.0).verdict for i in range(runs)]
    for word in ("reproduced", "partially", "not reproduced", "inconclusive"):
        assert words.count(word) / runs == pytest.approx(getattr(got, word.replace(" ", "_")))


def test_power_grows_with_seeds() -> None:
    found = power.plan(effect=0.3, sd=0.15, sesoi=0.15)
    assert found.for_width == 13 and found.for_80 == 5 and found.for_80_in_family == 6
    assert power.seeds_for_power(0.1, 0.15, 0.15) is None  # below the SESOI


def test_bootstrap_covers_too_little_and_t_does_not() -> None:
    bootstrap, t = power.coverage(5, runs=4000, resamples=500)
    assert bootstrap < 0.87 and 0.94 < t < 0.96


def test_two_looks_need_wider_bounds() -> None:
    assert power.two_looks(ALPHA) > 0.07 and power.two_looks(0.03) < 0.055


def test_the_page_is_what_the_script_writes() -> None:
    assert power.markdown(power.characteristics()) == (DOCS / "operating_characteristics.md").read_text("utf-8")
