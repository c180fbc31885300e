"""The index of the site: one row a paper."""

from __future__ import annotations

from collections import Counter

from filelock import FileLock

from restudy import layout
from restudy.report import load, rendering, words
from restudy.report.model import IndexPage
from restudy.results.files import write_atomically


def render(preset: str, arriving: str = "") -> bytes:
    """The index of a preset as HTML bytes, whatever is there so far.

    Raises:
        ConfigError: no study has the preset.
    """
    return html(load.index(preset, arriving))


def html(page: IndexPage) -> bytes:
    """The index from what it shows."""
    papers = Counter(row.verdict for row in page.rows)
    claims: Counter[str] = Counter()
    for row in page.rows:
        claims.update(dict(row.counts))
    order = [word for word in words.VERDICTS if papers[word]]
    totals = tuple((word, claims[word]) for word in words.VERDICTS if claims[word])
    minutes = [row.cpu_minutes for row in page.rows if row.cpu_minutes is not None]
    return rendering.render(
        "index.html.j2",
        page=page,
        papers=[(word, papers[word]) for word in order],
        claims=totals,
        ranks={word: rank for rank, word in enumerate(words.VERDICTS)},
        minutes=sum(minutes) if minutes else None,
        false_reproduced=sum(row.false_reproduced for row in page.rows),
        false_not_reproduced=sum(row.false_not_reproduced for row in page.rows),
    )


def write(preset: str, arriving: str = "") -> None:
    """Render the index and write it, one writer at a time.

    Args:
        arriving: a study whose page is about to be written, linked already.
    """
    lock = layout.work("locks", f"index.{preset}")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        write_atomically(layout.report(preset) / "index.html", render(preset, arriving))
