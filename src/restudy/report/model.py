"""What the pages show, as plain values: a loader fills them from files, a template draws them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

NOT_RUN = "not run yet"


@dataclass(frozen=True)
class Claim:
    """A claim, or one part of it, with its verdict. Numbers are in the metric's unit; None: there is none."""

    id: str
    says: str
    where: str = ""
    why: str = ""
    kind: str = ""
    side: str = ""
    primary: bool = False
    verdict: str = NOT_RUN
    reason: str = ""
    flags: tuple[str, ...] = ()
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    alpha: float = 0.05
    look: int = 1
    sesoi: float | None = None
    margin: float | None = None
    bound: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    p_sign_flip: float | None = None
    prob_superiority: float | None = None
    leave_one_out: str = ""
    n: int = 0
    n_failed: int = 0
    seeds_needed: int | None = None
    unit: str = ""
    scale: str = "identity"
    gate: str = ""
    control: str = ""
    control_verdict: str = ""
    statistic: str = ""
    formula: str = ""
    paper_value: float | None = None
    paper_note: str = ""
    parts: tuple[Claim, ...] = ()

    @property
    def program(self) -> bool:
        """Whether this tests the program rather than the paper (exact, not primary)."""
        return self.kind == "exact" and not self.primary

    @property
    def statistical(self) -> bool:
        """Whether chance enters: any kind but exact and qualitative, in the claim or a part of it."""
        return any(kind not in ("exact", "qualitative", "") for kind in [p.kind for p in self.parts] or [self.kind])

    def with_parts(self, parts: tuple[Claim, ...]) -> Claim:
        """The same claim with these parts."""
        return replace(self, parts=parts)


@dataclass(frozen=True)
class Figure:
    """A figure: caption, place in the paper, alternative text, addresses by suffix, size in points."""

    name: str
    says: str
    where: str = ""
    alt: str = ""
    files: dict[str, str] = field(default_factory=dict)
    width: float | None = None
    height: float | None = None
    state: str = "fresh"


@dataclass(frozen=True)
class Table:
    """A table of results: its size and the addresses of its Parquet and CSV files."""

    name: str
    rows: int | None = None
    columns: tuple[str, ...] = ()
    parquet: str = ""
    csv: str = ""
    note: str = ""


@dataclass(frozen=True)
class DataSet:
    """A data set that the study reads."""

    name: str
    summary: str = ""
    licence: str = ""
    citation: str = ""
    homepage: str = ""
    note: str = ""
    sum: str = ""


@dataclass(frozen=True)
class StageCost:
    """What the jobs of one kind cost: CPU and wall seconds added up, the largest memory."""

    name: str
    jobs: int
    done: int
    cpu_seconds: float
    wall_seconds: float
    peak_mb: float


@dataclass(frozen=True)
class Provenance:
    """Where the numbers come from. `commits`: commit, whether the tree had other changes, number of jobs."""

    finished: str = ""
    commits: tuple[tuple[str, bool, int], ...] = ()
    machines: tuple[str, ...] = ()
    device: str = ""
    costs: tuple[StageCost, ...] = ()
    parameters: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    fingerprints: tuple[tuple[str, str], ...] = ()

    @property
    def cpu_minutes(self) -> float | None:
        """CPU minutes of everything that ran, None where no time was recorded."""
        return sum(c.cpu_seconds for c in self.costs) / 60 if any(c.done for c in self.costs) else None

    @property
    def complete(self) -> bool:
        """Whether a time was recorded for every job."""
        return all(c.done == c.jobs for c in self.costs)


@dataclass(frozen=True)
class IndexRow:
    """One paper in the index.

    `counts`: claims by verdict; `primary`: primary claims by verdict; `state`: fresh, stale, partial or not run.
    """

    slug: str
    title: str
    authors: str = ""
    year: int = 0
    verdict: str = NOT_RUN
    counts: tuple[tuple[str, int], ...] = ()
    primary: tuple[tuple[str, int], ...] = ()
    seeds: int = 0
    cpu_minutes: float | None = None
    finished: str = ""
    state: str = "not run"
    reasons: tuple[str, ...] = ()
    href: str = ""
    words: str = ""
    false_reproduced: float = 0.0
    false_not_reproduced: float = 0.0


@dataclass(frozen=True)
class PaperPage:
    """Everything on the page of one paper at one preset."""

    row: IndexRow
    preset: str
    judged_as: str
    frozen: bool
    citation: dict[str, Any]
    summary: str
    deviations: tuple[tuple[str, str, str], ...] = ()
    changes: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    data: tuple[DataSet, ...] = ()
    provenance: Provenance = Provenance()
    notebook: str = ""
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class IndexPage:
    """Everything on the index of one preset."""

    preset: str
    judged_as: str
    frozen: bool
    rows: tuple[IndexRow, ...]
    others: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
