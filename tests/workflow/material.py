"""Toy studies that are slow, fail, or read data: variations of the scaffold."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path

from tests.conftest import Project

STEPS = 40
_SLOW = f'''
def _slowly(context: Context, seed: int) -> float:
    """{STEPS} steps of 50 ms, each followed by a checkpoint; a line in the trace for each."""
    path = context.checkpoints / "step.json"
    state = json.loads(path.read_text()) if path.is_file() else {{"step": 0, "total": 0.0}}
    while state["step"] < {STEPS}:
        time.sleep(0.05)
        step = state["step"] + 1
        state = {{"step": step, "total": state["total"] / 2 + seed + 1 / step}}
        part = path.with_name(f"step.{{os.getpid()}}")
        part.write_text(json.dumps(state))
        part.replace(path)
        with Path(os.environ.get("TRACE", os.devnull)).open("a") as trace:
            trace.write(f"{{seed}} {{step}}\\n")
    return float(state["total"])
'''
_DATA = '''"""A made-up data set of one file."""

from restudy.data.dataset import Dataset, File
from restudy.data.store import verified

DATASET = Dataset(
    name="tiny",
    summary="made up",
    files=(File("numbers.txt", "{sha}", {size}),),
    sources=("file:{path}",),
    licence="CC0",
    citation="nobody",
    homepage="https://example.org/tiny",
    comparable_note="not comparable with anything",
)


def load() -> list[int]:
    """The numbers."""
    return [int(line) for line in verified(DATASET)["numbers.txt"].read_text().split()]
'''


def jobs(output: str) -> Counter[str]:
    """Jobs by rule, from the plan that a run prints."""
    plan = re.search(r"\d+ jobs (?:to run|would run): (.*)", output)
    if plan is None:
        assert "nothing to be done" in output, output
        return Counter()
    return Counter({m[1]: int(m[2]) for m in re.finditer(r"(\w+) (\d+)", plan[1])})


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text that must be there."""
    text = path.read_text()
    assert old in text, f"{old!r} is not in {path}"
    path.write_text(text.replace(old, new))


def add(project: Project, slug: str, first: str = "") -> Path:
    """A scaffold study; `first` is put in front of its stage's work. Returns the stage's file."""
    project.restudy("new", slug)
    source = project.study(slug) / "experiment.py"
    edit(
        source,
        "import numpy as np\n",
        "import json\nimport os\nimport time\nfrom pathlib import Path\n\nimport numpy as np\n",
    )
    edit(source, "    for seed in seeds:\n", f"    {first or 'pass'}\n    for seed in seeds:\n")
    return source


def _row(method: str, value: str) -> str:
    """A statement that adds a row to the scaffold's table `steps`."""
    where = f'"seed": seeds[0], "instance": 0, "method": "{method}", "metric": "{method}"'
    return f'rows.append({{{where}, "value": {value}, "unit": "1"}})'


def add_slow(project: Project, slug: str, seeds: int = 2) -> None:
    """A study whose stage takes two seconds a seed and goes on from its checkpoint."""
    source = add(project, slug, _row("slow", "_slowly(context, seeds[0])"))
    source.write_text(source.read_text() + "\n" + _SLOW)
    edit(project.study(slug) / "study.yaml", "  smoke:\n    seeds: 1", f"  smoke:\n    seeds: {seeds}")


def add_data(project: Project, slug: str, numbers: str = "1\n2\n3\n") -> None:
    """A data set `tiny` in the project, read by a study that exists; the project gets a data folder of its own."""
    package = project.root / "tiny-package"
    package.mkdir(exist_ok=True)
    (package / "numbers.txt").write_text(numbers)
    declare(project, numbers, package)
    project.env["RESTUDY_DATA"] = str(project.root / "data" / "raw")
    edit(project.study(slug) / "study.yaml", "    shards: [seeds]", "    data: [tiny]\n    shards: [seeds]")
    source = project.study(slug) / "experiment.py"
    edit(source, "import numpy as np\n", "import numpy as np\n\nfrom restudy.data import tiny\n")
    added = _row("sum", "float(sum(tiny.load()))")
    edit(source, "    for seed in seeds:", f"    {added}\n    for seed in seeds:")


def declare(project: Project, numbers: str, package: Path) -> None:
    """Write the declaration of `tiny` for some content."""
    raw = numbers.encode()
    text = _DATA.format(sha=hashlib.sha256(raw).hexdigest(), size=len(raw), path=package)
    (project.root / "src/restudy/data/tiny.py").write_text(text)
