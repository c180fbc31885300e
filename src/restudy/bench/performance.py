"""`make bench`: every package's `benchmark.rows()`, measured in one run, into docs/performance.md.

Benchmarks are found, not registered: a module `benchmark` with a function `rows() -> list of {what, ratio, aim, note}`
in any package of ours takes part.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
from datetime import UTC, datetime
from typing import Any

from restudy import layout
from restudy.provenance.environment import cpu_model
from restudy.results.files import write_atomically


def modules() -> list[str]:
    """The benchmark modules found."""
    found = sorted(layout.PACKAGE.glob("**/benchmark.py"))
    return ["restudy." + ".".join(p.relative_to(layout.PACKAGE).with_suffix("").parts) for p in found]


def measure() -> list[dict[str, Any]]:
    """All rows; a benchmark that fails is a row that says so."""
    rows: list[dict[str, Any]] = []
    for name in modules():
        print(f"restudy: {name}", file=sys.stderr, flush=True)
        try:
            rows += [{"module": name, **row} for row in importlib.import_module(name).rows()]
        except Exception as error:
            rows.append({"module": name, "what": "all of it", "ratio": None, "aim": None, "note": f"failed: {error}"})
    return rows


def page(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown page, with the machine named."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    lines = [
        "# Performance",
        "",
        "Written by `make bench`. Ratios measured in one run; above 1 is in our favour where a peer is named.",
        "",
        f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"{datetime.now(UTC).date().isoformat()}, load {load:.1f} at the end, one thread a process.",
        "",
        "| what | ratio | aim | note |",
        "| --- | --- | --- | --- |",
    ]
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        aim = "" if row["aim"] is None else f"at least {row['aim']:g}"
        lines.append(f"| {row['what']} | {ratio} | {aim} | {str(row['note']).replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write docs/performance.md."""
    text = page(measure())
    write_atomically(layout.root() / "docs" / "performance.md", text.encode())
    print(text)


if __name__ == "__main__":
    main()
