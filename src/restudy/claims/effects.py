"""What a kind asks of its replicates: effects on the test scale, and what they are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ClaimError
from . import scales
from .replicates import Grid, grid, has, to_scale
from .schema import Statement

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, on the test scale.

    ``above``: does the effect exceed 0, and reach ``target``? ``within``: does it lie in [low, high]?
    ``exact``: is the largest deviation at most ``target``? ``settle`` is the half-width of the interval
    that settles the matter (0: the distance of the estimate itself).
    """

    form: Literal["above", "within", "exact"]
    target: float = 0.0
    low: float = math.nan
    high: float = math.nan
    settle: float = 0.0
    centre: float = 0.0
    paper_sd: float | None = None
    paper_n: int | None = None
    one_draw: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """Effects of one statement: shape (n, K), K = 1 but for orderings (one column per adjacent pair).

    Rows with NaN are failed replicates. ``steps`` (n, k-1) are the changes between neighbouring x of a trend;
    ``arms`` the two arms of an unpaired comparison; ``magnitude`` the largest absolute value that went in.
    """

    effects: Array
    magnitude: float
    names: tuple[str, ...] = ("",)
    steps: Array | None = None
    arms: tuple[Array, Array] | None = None

    @property
    def n(self) -> int:
        """Number of replicates, failed ones included."""
        return int(self.effects.shape[0])

    @property
    def n_failed(self) -> int:
        """Number of replicates that failed (NaN)."""
        return int(np.isnan(self.effects).any(axis=1).sum())

    @property
    def finite(self) -> Array:
        """The effects of the replicates that did not fail."""
        return self.effects[~np.isnan(self.effects).any(axis=1)]


def question(s: Statement) -> Question:
    """The question of a statement: SESOI, margin and bound carried to the test scale (see ``scales``)."""
    if s.kind == "exact":
        return Question("exact", target=float(s.tolerance or 0.0))
    if s.kind == "threshold":
        reach = abs(_place(s, "bound", s.sesoi or 0.0) - _place(s, "bound", 0.0)) if s.sesoi else 0.0
        return Question("above", target=reach, settle=reach / 2)
    if s.kind == "non_inferiority":
        margin = scales.size(s.scale, s.margin or 0.0)
        return Question("above", settle=margin / 2, centre=margin)
    if s.kind == "no_difference":
        margin = scales.size(s.scale, s.margin or 0.0)
        return Question("within", low=-margin, high=margin, settle=margin / 2)
    if s.kind == "value":
        return _question_value(s)
    target = scales.size(s.scale, s.sesoi or 0.0)
    return Question("above", target=target, settle=target / 2)


def _place(s: Statement, field: str, reach: float) -> float:
    sign = 1.0 if s.side == "above" else -1.0
    return scales.place(s.scale, float(getattr(s, field)) + sign * reach)


def _question_value(s: Statement) -> Question:
    assert s.paper is not None and s.paper.value is not None and s.margin is not None
    here, margin = s.paper.value, s.margin
    at = scales.place(s.scale, here)
    low, high = scales.place(s.scale, here - margin) - at, scales.place(s.scale, here + margin) - at
    one_draw = s.paper.sd is None or s.paper.n is None or s.paper.n < 2
    sd = s.paper.sd
    if sd is not None and s.scale != "identity":  # delta method: the slope of the scale at the paper's value
        step = 1e-6 * margin
        sd *= (scales.place(s.scale, here + step) - scales.place(s.scale, here - step)) / (2 * step)
    return Question("within", low=low, high=high, settle=(high - low) / 4, paper_sd=sd, paper_n=s.paper.n,
                    one_draw=one_draw)  # fmt: skip


def sample(table: pa.Table, s: Statement, where: str) -> Sample:
    """The effects of a statement. Raises ClaimError for a table that cannot be judged (field and remedy)."""
    if s.kind == "ordering":
        return _ordering(table, s, where)
    if s.kind == "trend":
        return _trend(table, s, where)
    if s.kind in ("direction", "non_inferiority", "no_difference") and has(table, "group"):
        return _two_arms(table, s, where)
    if s.reference is not None and s.scale in ("fisher_z", "logit"):
        raise ClaimError(
            f"scale: the statistic subtracts `{s.reference}`, and a difference has no {s.scale}",
            where=where,
            remedy="return both arms, named in a column `group`, or use scale identity",
        )
    if has(table, "group"):
        raise ClaimError(f"group: has no meaning for kind {s.kind}", where=where, remedy="leave the column out")
    raw = grid(table, s, where, None).values
    effects = to_scale(raw, s, where)
    magnitude = _magnitude(raw)
    if s.kind == "threshold":
        bound = scales.place(s.scale, float(s.bound or 0.0))
        effects = effects - bound if s.side == "above" else bound - effects
        magnitude = max(magnitude, abs(bound))
    elif s.kind == "value" and s.paper is not None:
        effects = effects - scales.place(s.scale, float(s.paper.value or 0.0))
    elif s.kind == "non_inferiority":
        effects = effects + scales.size(s.scale, float(s.margin or 0.0))
    return Sample(effects, magnitude)


def _magnitude(raw: Array) -> float:
    return float(np.nanmax(np.abs(raw))) if np.isfinite(raw).any() else 0.0


def _two_arms(table: pa.Table, s: Statement, where: str) -> Sample:
    """Arm minus reference, each on the test scale; paired by replicate unless ``paired: false``."""
    g = grid(table, s, where, "group")
    if len(g.levels) != 2 or s.reference not in g.levels:
        raise ClaimError(
            f"group: holds {', '.join(map(str, g.levels))}; needed are two arms, one of them the `reference`"
            f" ({s.reference})",
            where=where,
            remedy="return the arm and its reference only",
        )
    at = g.levels.index(s.reference)
    values = to_scale(g.values, s, where)
    arm, reference = values[:, 1 - at], values[:, at]
    shift = scales.size(s.scale, s.margin or 0.0) if s.kind == "non_inferiority" else 0.0
    if s.paired:
        return Sample((pair(arm, reference) + shift)[:, None], _magnitude(g.values))
    present = ~g.absent
    arm, reference = arm[present[:, 1 - at]] + shift, reference[present[:, at]]
    size = min(len(arm), len(reference))
    failed = int(np.isnan(arm).sum() + np.isnan(reference).sum())
    shown = np.full((size, 1), 0.0)
    shown[: min(failed, size)] = np.nan
    arms = (arm[~np.isnan(arm)], reference[~np.isnan(reference)])
    return Sample(shown, _magnitude(g.values), arms=arms)


def pair(arm: Array, reference: Array) -> Array:
    """Differences of two arms that share their replicates (common random numbers)."""
    return arm - reference


def _ordering(table: pa.Table, s: Statement, where: str) -> Sample:
    """Adjacent differences: of the groups named in ``order``, or the table's own (each group is one pair)."""
    g = grid(table, s, where, "group")
    values = to_scale(g.values, s, where)
    if s.order is None:
        return Sample(values, _magnitude(g.values), names=tuple(map(str, g.levels)))
    named = [str(level) for level in g.levels]
    if sorted(named) != sorted(s.order):
        raise ClaimError(
            f"group: holds {', '.join(named)}, but `order` names {', '.join(s.order)}",
            where=where,
            remedy="let the statistic return exactly the groups of `order`",
        )
    at = [named.index(name) for name in s.order]
    effects = pair(values[:, at[:-1]], values[:, at[1:]])
    names = tuple(f"{a} > {b}" for a, b in zip(s.order[:-1], s.order[1:], strict=True))
    return Sample(effects, _magnitude(g.values), names=names)


def _trend(table: pa.Table, s: Statement, where: str) -> Sample:
    """Change over the tested range of x, per replicate: last minus first, or the fitted line's change."""
    g = grid(table, s, where, "x")
    x = _abscissa(g, s, where)
    values = to_scale(g.values, s, where)
    if s.shape == "monotone":
        change = pair(values[:, -1], values[:, 0])
    else:
        centred = x - x.mean()
        change = values @ centred / (centred @ centred) * (x[-1] - x[0])
    names = tuple(f"{a} -> {b}" for a, b in zip(g.levels[:-1], g.levels[1:], strict=True))
    return Sample(change[:, None], _magnitude(g.values), names=names, steps=np.diff(values, axis=1))


def _abscissa(g: Grid, s: Statement, where: str) -> Array:
    levels: tuple[Any, ...] = g.levels
    try:
        x = np.array(levels, dtype=np.float64)
    except (TypeError, ValueError):
        raise ClaimError("x: holds something that is not a number", where=where, remedy="return float64") from None
    if len(x) < 2 or not np.isfinite(x).all():
        raise ClaimError("x: at least two finite values are needed", where=where, remedy="look at the statistic")
    if s.x_scale == "log":
        if (x <= 0).any():
            raise ClaimError("x: x_scale log needs positive values", where=where, remedy="use x_scale linear")
        x = np.log(x)
    return x


def reporter(s: Statement) -> tuple[Any, bool]:
    """How to print an effect of the test scale in the metric's unit: a function, and whether ends swap."""
    scale = s.scale
    if s.kind == "threshold":
        bound = scales.place(scale, float(s.bound or 0.0))
        if s.side == "above":
            return (lambda e: scales.back_place(scale, bound + e)), False
        return (lambda e: scales.back_place(scale, bound - e)), True
    if s.kind == "value" and s.paper is not None and s.paper.value is not None:
        value = s.paper.value
        at = scales.place(scale, value)
        return (lambda e: scales.back_place(scale, at + e) - value), False
    if s.kind == "non_inferiority":
        margin = scales.size(scale, float(s.margin or 0.0))
        return (lambda e: scales.back_size(scale, e - margin)), False
    return (lambda e: scales.back_size(scale, e)), False
