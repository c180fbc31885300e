"""What the scheme can and cannot see: seeds needed, operating characteristics, coverage of intervals.

``python -m restudy.claims.power [FOLDER]`` writes the table and the figure of ``docs/power`` again; the same
seed gives the same bytes. Simulations use the engine's own fits, bounds and p values on many studies at a
time; the four rules of ``simulate`` are held to ``judge`` by a test.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from . import ttest
from .seeds import seeds_needed
from .words import ALPHA, INCONCLUSIVE, MAX_PRIMARY, NOT_REPRODUCED, PARTIALLY, REPRODUCED

Array = npt.NDArray[np.float64]

RUNS: Final = 100_000
SEEDS: Final = (5, 10, 20)
EFFECTS: Final = (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
"""True effects, in units of the s.d. of one replicate."""


@dataclass(frozen=True, slots=True)
class Characteristics:
    """Probabilities of the verdicts for a true effect (in s.d. of one replicate) at n replicates."""

    n: int
    effect: float
    sesoi: float
    alpha: float
    reproduced: float
    partially: float
    not_reproduced: float
    inconclusive: float


def simulate(n: int, effect: float, sesoi: float, *, alpha: float = ALPHA, family: int = 1,
             runs: int = RUNS, seed: int = 0) -> Characteristics:  # fmt: skip
    """Operating characteristics of one direction claim; ``effect`` and ``sesoi`` in s.d. of one replicate.

    ``family``: the claim must pass Holm's hardest step, p < alpha / family (1: alone).
    """
    rng = np.random.default_rng([seed, n, round(1000 * (effect + 100)), family])
    fit = ttest.fit(rng.normal(effect, 1.0, size=(n, runs)))
    low, high = ttest.lower(fit, alpha), ttest.upper(fit, alpha)
    significant = ttest.p_above(fit) < alpha / family
    absent = high < sesoi
    present = (low > 0) & ~absent
    full = present & (fit.mean >= sesoi) & significant
    shares = (full, present & ~full, absent, ~absent & ~present)
    return Characteristics(n, effect, sesoi, alpha, *(float(share.mean()) for share in shares))


def seeds_for_power(effect: float, sd: float, sesoi: float, *, power: float = 0.8, alpha: float = ALPHA,
                    family: int = 1, largest: int = 200) -> int | None:  # fmt: skip
    """Smallest n >= 5 at which a true ``effect`` comes out ``reproduced`` with probability ``power``.

    ``effect``, ``sd`` and ``sesoi`` in the metric's unit. None above ``largest`` (an effect at or below S
    cannot reach a power above one half).
    """

    def enough(n: int) -> bool:
        return simulate(n, effect / sd, sesoi / sd, alpha=alpha, family=family, runs=20_000).reproduced >= power

    if sd <= 0 or not enough(largest):
        return None
    low, high = 5, largest
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low


@dataclass(frozen=True, slots=True)
class Plan:
    """Seeds for one claim: ``for_width`` (half-width at most S/2), ``for_80`` and ``for_90`` (power, alone)
    and ``for_80_in_family`` (at Holm's hardest step among four)."""

    effect: float
    sd: float
    sesoi: float
    for_width: int | None
    for_80: int | None
    for_90: int | None
    for_80_in_family: int | None


def plan(effect: float, sd: float, sesoi: float, *, alpha: float = ALPHA) -> Plan:
    """How many seeds a direction claim needs; all arguments in the metric's unit, s.d. of one replicate."""
    return Plan(
        effect, sd, sesoi, seeds_needed(sd, sesoi / 2, alpha),
        seeds_for_power(effect, sd, sesoi, alpha=alpha),
        seeds_for_power(effect, sd, sesoi, alpha=alpha, power=0.9),
        seeds_for_power(effect, sd, sesoi, alpha=alpha, family=MAX_PRIMARY),
    )  # fmt: skip


def two_looks(alpha: float, *, first: int = 5, total: int = 10, runs: int = RUNS, seed: int = 0) -> float:
    """Share of null claims (S near 0) that come out reproduced at either look, each bound at 1 - alpha."""
    draws = np.random.default_rng([seed, first, total]).normal(0.0, 1.0, size=(total, runs))
    one, two = ttest.fit(draws[:first]), ttest.fit(draws)
    open_ = (ttest.lower(one, alpha) <= 0) & (ttest.upper(one, alpha) >= 0)
    return float(np.mean((ttest.lower(one, alpha) > 0) | (open_ & (ttest.lower(two, alpha) > 0))))


def coverage(n: int, *, runs: int = 20_000, resamples: int = 1000, seed: int = 0) -> tuple[float, float]:
    """Coverage of two-sided 95% intervals for the mean of n normal replicates: (percentile bootstrap, t)."""
    rng = np.random.default_rng([seed, n])
    draws = rng.normal(0.0, 1.0, size=(runs, n))
    fit = ttest.fit(draws.T)
    t = float(np.mean((ttest.lower(fit, 0.025) <= 0) & (ttest.upper(fit, 0.025) >= 0)))
    inside = 0
    for block in np.array_split(draws, math.ceil(runs / 500)):
        weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples) / n
        low, high = np.quantile(block @ weights.T, [0.025, 0.975], axis=1)
        inside += int(((low <= 0) & (high >= 0)).sum())
    return inside / runs, t


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def characteristics(sesoi: float = 1.0) -> list[Characteristics]:
    """The grid of the documentation: every n of SEEDS and effect of EFFECTS, at S = ``sesoi`` s.d."""
    return [simulate(n, effect, sesoi) for n in SEEDS for effect in EFFECTS]


def markdown(rows: Sequence[Characteristics]) -> str:
    """The documentation's page as Markdown: verdict shares, the hardest Holm step, coverage, seeds needed."""
    lines = [
        "# Operating characteristics",
        "",
        "Written by `python -m restudy.claims.power`; do not edit. Shares in percent of "
        f"{RUNS:,} simulated studies of one `direction` claim, normal replicates.",
        "",
        "## One claim, S = 1 s.d. of one replicate",
        "",
        "| n | true effect (s.d.) | reproduced | partially | not reproduced | inconclusive |",
        "|--:|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        cells = (r.reproduced, r.partially, r.not_reproduced, r.inconclusive)
        lines.append(f"| {r.n} | {r.effect:g} | " + " | ".join(map(_percent, cells)) + " |")
    lines += ["", f"![verdict shares against the true effect]({_FIGURE})", ""]
    lines += _family_lines() + _coverage_lines() + _seeds_lines()
    return "\n".join(lines) + "\n"


def _family_lines() -> list[str]:
    lines = [
        "## The hardest step of Holm",
        "",
        "Share of `reproduced` at a true effect of 2 s.d., S = 1 s.d., where the claim has the smallest p value "
        "of a family of k primary claims.",
        "",
        "| n | k = 1 | k = 2 | k = 4 | k = 6 |",
        "|--:|--:|--:|--:|--:|",
    ]
    for n in SEEDS:
        shares = [simulate(n, 2.0, 1.0, family=k).reproduced for k in (1, 2, 4, 6)]
        lines.append(f"| {n} | " + " | ".join(map(_percent, shares)) + " |")
    return [*lines, ""]


def _coverage_lines() -> list[str]:
    lines = [
        "## Coverage of two-sided 95% intervals for a mean",
        "",
        "| n | percentile bootstrap | t |",
        "|--:|--:|--:|",
    ]
    for n in (3, 5, 10, 20):
        lines.append(f"| {n} | " + " | ".join(map(_percent, coverage(n))) + " |")
    lines += [
        "",
        "## Two looks",
        "",
        "Share of null claims, S near 0, that come out `reproduced` when five seeds may be extended to ten: "
        f"{_percent(two_looks(0.05))}% with 95% bounds at both looks, {_percent(two_looks(0.03))}% with 97% bounds.",
    ]
    return [*lines, ""]


def _seeds_lines() -> list[str]:
    lines = [
        "## Seeds needed for a half-width of S/2",
        "",
        "| s.d. / S | one look (95% bounds) | with an extension (97% bounds) |",
        "|--:|--:|--:|",
    ]
    for ratio in (0.25, 0.5, 0.75, 1.0, 1.5, 2.0):
        lines.append(f"| {ratio:g} | {seeds_needed(ratio, 0.5)} | {seeds_needed(ratio, 0.5, 0.03)} |")
    return lines


_FIGURE: Final = "operating_characteristics.svg"
_STYLES: Final = {
    REPRODUCED: ("#009E73", "-"),
    PARTIALLY: ("#56B4E9", "--"),
    NOT_REPRODUCED: ("#D55E00", "-."),
    INCONCLUSIVE: ("#777777", ":"),
}


def draw(path: Path, *, sesoi: float = 1.0, runs: int = 20_000) -> None:
    """The figure: shares of the verdicts against the true effect, one panel per n (SVG, same bytes each time)."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.hashsalt": "restudy", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(8, 2.8), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.subplots(1, len(SEEDS), sharey=True)
        effects = np.linspace(-1.0, 3.0, 33)
        for axis, n in zip(axes, SEEDS, strict=True):
            rows = [simulate(n, float(effect), sesoi, runs=runs) for effect in effects]
            for word, (colour, line) in _STYLES.items():
                shares = [getattr(row, word.replace(" ", "_")) for row in rows]
                axis.plot(effects, shares, color=colour, linestyle=line, label=word)
            axis.axvline(sesoi, color="black", linewidth=0.6)
            axis.set_title(f"n = {n}", fontsize=9)
            axis.set_xlabel("true effect (s.d. of one replicate)")
        axes[0].set_ylabel("share of studies")
        lines, words = axes[0].get_legend_handles_labels()
        figure.legend(lines, words, loc="outside upper center", ncols=len(words), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def write(folder: str | Path) -> list[Path]:
    """Write ``operating_characteristics.md`` and ``.svg`` into a folder, and return their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page, figure = folder / "operating_characteristics.md", folder / _FIGURE
    page.write_text(markdown(characteristics()), encoding="utf-8")
    draw(figure)
    return [page, figure]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line: one optional argument, the folder (``docs/power`` by default)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for path in write(given[0] if given else "docs/power"):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
