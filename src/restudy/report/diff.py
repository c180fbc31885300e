"""Two runs side by side: which verdicts changed, and which estimates moved by how many standard errors."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from restudy.report.diff_sources import Rows, read_run
from restudy.report.words import number


@dataclass(frozen=True)
class Side:
    """What one run says about a claim."""

    verdict: str
    reason: str
    primary: bool
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    alpha: float
    n: int

    @property
    def text(self) -> str:
        """`partially (magnitude)`."""
        return f"{self.verdict} ({self.reason})" if self.reason else self.verdict

    @property
    def standard_error(self) -> float | None:
        """From the width of the interval, which holds at confidence 1 - alpha on each side; None without one."""
        if self.ci_low is None or self.ci_high is None or self.n < 2:
            return None
        from scipy import stats

        error = (self.ci_high - self.ci_low) / 2 / float(stats.t.ppf(1 - self.alpha, self.n - 1))
        return error if math.isfinite(error) and error > 0 else None


@dataclass(frozen=True)
class Change:
    """A claim in both runs, or in one of them (the other side is None)."""

    study: str
    claim: str
    before: Side | None
    after: Side | None

    @property
    def verdict_changed(self) -> bool:
        """Whether both runs judge the claim, with different words or reasons."""
        return self.before is not None and self.after is not None and self.before.text != self.after.text

    @property
    def moved(self) -> float | None:
        """How far the estimate moved, in standard errors of the difference of two independent runs."""
        a, b = self.before, self.after
        if a is None or b is None or a.estimate is None or b.estimate is None:
            return None
        if a.estimate == b.estimate:
            return 0.0
        errors = a.standard_error, b.standard_error
        if errors[0] is None or errors[1] is None:
            return None
        return (b.estimate - a.estimate) / math.hypot(errors[0], errors[1])


@dataclass(frozen=True)
class Diff:
    """The comparison of run `a` with run `b`: a line a claim, changed verdicts first, then by how far it moved."""

    a: str
    b: str
    changes: tuple[Change, ...]
    kernels: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def kinds(self) -> str | None:
        """A line that names the kinds of machine where the runs were made on different ones."""
        first, second = ("; ".join(names) for names in self.kernels)
        if not first or not second or first == second:
            return None
        return f"made on different kinds of machine, which differ without any change of source: {first} -> {second}"

    @property
    def changed(self) -> tuple[Change, ...]:
        """The claims whose verdict changed."""
        return tuple(c for c in self.changes if c.verdict_changed)

    @property
    def same(self) -> bool:
        """Whether both runs hold the same claims with the same verdicts."""
        return not self.changed and all(c.before and c.after for c in self.changes)

    def text(self) -> str:
        """The comparison as lines of text; claims that stayed exactly the same are only counted."""
        both = [c for c in self.changes if c.before and c.after]
        lines = [f"{self.a} -> {self.b}: {len(both)} claims in both, {len(self.changed)} verdicts changed"]
        lines += [self.kinds] if self.kinds else []
        for change in self.changes:
            name = f"{change.study} {change.claim}"
            if change.before is None or change.after is None:
                lines.append(f"only in {self.b if change.before is None else self.a}: {name}")
            elif change.verdict_changed:
                lines.append(f"changed: {name}: {change.before.text} -> {change.after.text}{_moved(change)}")
            elif change.before.estimate != change.after.estimate:
                lines.append(f"moved:   {name}: {change.after.text}{_moved(change)}")
        still = sum(1 for c in both if not c.verdict_changed and _estimates(c)[0] == _estimates(c)[1])
        return "\n".join([*lines, f"{still} claims are exactly as before"])

    def json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        rows = [asdict(c) | {"verdict_changed": c.verdict_changed, "moved": c.moved} for c in self.changes]
        kernels = {"a": self.kernels[0], "b": self.kernels[1]}
        return {"a": self.a, "b": self.b, "same": self.same, "kernels": kernels, "claims": rows}

    def json_text(self) -> str:
        """The comparison as JSON, with a newline at the end; numbers that JSON lacks are null."""
        return json.dumps(_finite(self.json()), indent=1, sort_keys=True, allow_nan=False) + "\n"

    def html(self) -> bytes:
        """The comparison as a page that stands alone."""
        from restudy.report.rendering import render

        return render("diff.html.j2", diff=self)


def compare(a: Path | str, b: Path | str) -> Diff:
    """Compare two runs.

    Args:
        a: a preset; a folder (a project, `results/<preset>` or one study's folder in it); or a git commit,
            `COMMIT` or `COMMIT:PRESET` (laptop by default), whose results DVC can still find.
        b: the same.

    Raises:
        ConfigError: neither preset, folder nor commit, or no verdicts are stored there.
    """
    runs = read_run(a), read_run(b)
    before, after = (run.rows for run in runs)
    keys = dict.fromkeys([*before, *after])
    changes = [Change(study, claim, _side(before, study, claim), _side(after, study, claim)) for study, claim in keys]
    changes.sort(key=lambda c: (c.before is None or c.after is None, not c.verdict_changed, -abs(c.moved or 0.0)))
    first, second = (tuple(sorted(run.kernels)) for run in runs)
    return Diff(str(a), str(b), tuple(changes), (first, second))


def _side(rows: Rows, study: str, claim: str) -> Side | None:
    row = rows.get((study, claim))
    if row is None:
        return None
    return Side(
        verdict=str(row.get("verdict", "")),
        reason=str(row.get("reason") or ""),
        primary=bool(row.get("primary")),
        estimate=row.get("estimate"),
        ci_low=row.get("ci_low"),
        ci_high=row.get("ci_high"),
        alpha=float(row.get("alpha") or 0.05),
        n=int(row.get("n") or 0),
    )


def _estimates(change: Change) -> tuple[float | None, float | None]:
    return (change.before.estimate if change.before else None, change.after.estimate if change.after else None)


def _moved(change: Change) -> str:
    before, after = _estimates(change)
    if before is None and after is None:
        return ""
    far = "" if change.moved is None else f" ({number(change.moved, 2)} standard errors)"
    return f"  {number(before)} -> {number(after)}{far}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
