"""`make bench`: every package's `benchmark.rows()`, measured in one run, into docs/performance.md.

Benchmarks are found, not registered: a module `benchmark` with a function `rows() -> list of {what, ratio, aim, note}`
in any package of ours takes part. With packages named (`make bench ONLY="relevance sweeps"`) only theirs are measured
anew; what the others gave stays, with its own date, from docs/performance.json.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
from datetime import UTC, datetime
from typing import Any

from restudy import layout
from restudy.errors import RestudyError
from restudy.provenance.environment import cpu_model
from restudy.results.files import write_atomically

Measured = dict[str, dict[str, Any]]
"""Package to `rows`, `date`, `load` (at its end) and `machine`."""


def packages() -> list[str]:
    """The packages with a benchmark, as dotted names below `restudy`."""
    found = sorted(layout.PACKAGE.glob("**/benchmark.py"))
    return [".".join(path.relative_to(layout.PACKAGE).parent.parts) for path in found]


def chosen(names: list[str]) -> list[str]:
    """The packages named, all of them if none is.

    Raises:
        RestudyError: a name has no benchmark.
    """
    there = packages()
    unknown = sorted(set(names) - set(there))
    if unknown:
        raise RestudyError(f"no benchmark in {', '.join(unknown)}: there are {', '.join(there)}")
    return [name for name in there if not names or name in names]


def measure(name: str) -> dict[str, Any]:
    """One package's rows; a benchmark that fails is a row that says so."""
    print(f"restudy: measuring {name}", file=sys.stderr, flush=True)
    try:
        rows = list(importlib.import_module(f"restudy.{name}.benchmark").rows())
    except Exception as error:
        rows = [{"what": f"{name}: all of it", "ratio": None, "aim": None, "note": f"failed: {error}"}]
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    machine = f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return {"rows": rows, "date": datetime.now(UTC).date().isoformat(), "load": load, "machine": machine}


def page(measured: Measured) -> str:
    """The rows as a Markdown page: a table a package, with machine, date and load."""
    lines = [
        "# Performance",
        "",
        "Written by `make bench`. Ratios of CPU or wall time, both sides in one run, one thread each; above 1 is in",
        "our favour where a peer is named. Seconds on another machine differ; ratios differ less.",
    ]
    for name, found in sorted(measured.items()):
        load = "" if found["load"] is None else f", load {found['load']:.1f} at the end"
        lines += ["", f"## {name}", "", f"{found['machine']}, {found['date']}{load}.", ""]
        lines += ["| what | ratio | aim | note |", "| --- | --- | --- | --- |"]
        for row in found["rows"]:
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.3g}"
            aim = "" if row["aim"] is None else f"at least {row['aim']:g}"
            lines.append(f"| {row['what']} | {ratio} | {aim} | {str(row['note']).replace('|', '/')} |")
    return "\n".join(lines) + "\n"


def main(names: list[str]) -> None:
    """Measure and write docs/performance.{json,md}, after every package, so that a stop loses one at most."""
    docs = layout.root() / "docs"
    record = docs / "performance.json"
    measured: Measured = json.loads(record.read_text()) if record.exists() else {}
    measured = {name: found for name, found in measured.items() if name in packages()}
    for name in chosen(names):
        measured[name] = measure(name)
        write_atomically(record, (json.dumps(measured, indent=1, sort_keys=True) + "\n").encode())
        write_atomically(docs / "performance.md", page(measured).encode())
    print(page(measured))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RestudyError as error:
        sys.exit(f"restudy: {error}")
