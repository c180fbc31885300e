"""Forest plot of a paper's verdicts: estimate, interval, what it is compared with, and the verdict.

Every claim has a unit of its own, so every row has an axis of its own. The verdict shows three ways: as a
word, as a marker shape, and as a colour (Okabe and Ito's palette); the first two do without the third.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .study import StudyVerdicts
from .verdict import Verdict
from .words import ERROR, INCONCLUSIVE, NOT_REPRODUCED, NOT_TESTABLE, PARTIALLY, REPRODUCED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SLIM: Final = 0.4  # height of a row without numbers, in rows
STYLE: Final[dict[str, tuple[str, str, str]]] = {
    REPRODUCED: ("#009E73", "o", "full"),
    PARTIALLY: ("#56B4E9", "o", "left"),
    NOT_REPRODUCED: ("#D55E00", "X", "full"),
    INCONCLUSIVE: ("#999999", "D", "none"),
    NOT_TESTABLE: ("#999999", "|", "none"),
    ERROR: ("#000000", "s", "none"),
}
"""Verdict -> colour, marker, fill."""


def forest(result: StudyVerdicts | Iterable[Verdict], *, title: str | None = None, width: float = 8.0) -> Figure:
    """A matplotlib figure with one row per claim, parts below their claim; sizes in inches.

    Dot: estimate; bar: the two one-sided bounds; thin line: no effect; dashed line: SESOI or bound; shaded:
    the region in which the claim holds. Rows without numbers show their verdict as a word only; claims that are
    not judged at the preset are left out.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = _rows(result)
    if title is None:
        title = _title(result) if isinstance(result, StudyVerdicts) else ""
    heights = [_SLIM if verdict.estimate is None else 1.0 for verdict in rows] or [1.0]
    figure = Figure(figsize=(width, 0.9 + 0.58 * sum(heights)), layout=None)
    FigureCanvasAgg(figure)
    high = figure.get_figheight()
    grid = figure.add_gridspec(
        len(heights),
        1,
        height_ratios=heights,
        left=0.27,
        right=0.66,
        top=1 - 0.45 / high,
        bottom=0.4 / high,
        hspace=1.1,
    )
    for i, verdict in enumerate(rows):
        _row(figure.add_subplot(grid[i]), verdict)
    figure.suptitle(title, x=0.02, ha="left", fontsize=10)
    return figure


def _rows(result: StudyVerdicts | Iterable[Verdict]) -> list[Verdict]:
    if not isinstance(result, StudyVerdicts):
        return [verdict for verdict in result if verdict.verdict != NOT_TESTABLE]
    found: list[Verdict] = []
    for verdict in result.verdicts:
        found.append(verdict)
        found += [part for part in result.parts if part.claim == verdict.claim]
    return [verdict for verdict in found if verdict.verdict != NOT_TESTABLE]


def _title(result: StudyVerdicts) -> str:
    paper = result.paper.text if result.paper else "no paper verdict at this preset"
    return f"{result.study} ({result.preset}): {paper}"


def landmarks(v: Verdict) -> tuple[float | None, list[float], tuple[float | None, float | None] | None]:
    """The no-effect line, the dashed lines and the region in which the claim holds, in the metric's unit."""
    if v.kind == "threshold" and v.bound is not None:
        return None, [v.bound], (v.bound, None) if v.side == "above" else (None, v.bound)
    if v.kind in ("no_difference", "value") and v.margin is not None:
        return 0.0, [-v.margin, v.margin], (-v.margin, v.margin)
    if v.kind == "non_inferiority" and v.margin is not None:
        return 0.0, [-v.margin], (-v.margin, None)
    if v.kind == "exact" and v.bound is not None:
        return 0.0, [v.bound], (0.0, v.bound)
    return (0.0, [v.sesoi], (v.sesoi, None)) if v.sesoi is not None else (None, [], None)


def _row(axis: Axes, v: Verdict) -> None:
    """One row: its marks, its own axis, its name to the left and its verdict to the right."""
    colour, marker, fill = STYLE.get(v.verdict, STYLE[ERROR])
    axis.set_yticks([])
    axis.set_ylim(-1, 1)
    for side in ("left", "right", "top"):
        axis.spines[side].set_visible(False)
    if v.estimate is None:
        axis.set_xticks([])
        axis.spines["bottom"].set_visible(False)
    else:
        _marks(axis, v, colour, marker, fill)
    name = _shortened(v.part, 27) if v.part else v.claim + (" *" if v.primary else "")
    axis.text(-0.03, 0.5, name, transform=axis.transAxes, ha="right", va="center", fontsize=9)
    word: dict[str, Any] = {
        "transform": axis.transAxes,
        "va": "center",
        "fontsize": 9,
        "weight": "bold",
        "color": colour,
    }
    axis.text(1.03, 0.5 if v.estimate is None else 0.62, _shortened(v.text, 31), **word)
    if v.estimate is not None:
        beside = f"n = {v.n}" + (f"; {', '.join(flag[:40] for flag in v.flags)}" if v.flags else "")
        axis.text(
            1.03, 0.12, _shortened(beside, 40), transform=axis.transAxes, va="center", fontsize=8, color="#555555"
        )


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _marks(axis: Axes, v: Verdict, colour: str, marker: str, fill: str) -> None:
    zero, dashed, region = landmarks(v)
    assert v.estimate is not None
    points = [v.estimate, *(x for x in (v.ci_low, v.ci_high, zero) if x is not None), *dashed]
    low, high = min(points), max(points)
    pad = 0.08 * (high - low or abs(high) or 1.0)
    axis.set_xlim(low - pad, high + pad)
    if region is not None:
        left = low - pad if region[0] is None else region[0]
        right = high + pad if region[1] is None else region[1]
        axis.axvspan(left, right, facecolor="#eeeeee", edgecolor="none", zorder=0)
    if zero is not None:
        axis.axvline(zero, color="black", linewidth=0.8, zorder=1)
    for x in dashed:
        axis.axvline(x, color="black", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
    if v.ci_low is not None and v.ci_high is not None:
        axis.hlines(0, v.ci_low, v.ci_high, color=colour, linewidth=2, zorder=2)
    axis.plot([v.estimate], [0], marker=marker, fillstyle=fill, color=colour, markersize=7, zorder=3)
    axis.tick_params(labelsize=8, length=2, pad=1)
    axis.locator_params(axis="x", nbins=5)
    axis.xaxis.get_offset_text().set_fontsize(8)
