"""What re-runs after which change, on the real DAG: exactly what depends on it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from restudy.results import read_table, table_bytes
from tests.conftest import Project

pytestmark = pytest.mark.workflow


def jobs(output: str) -> Counter[str]:
    """Jobs by rule, from the plan that the run prints."""
    plan = re.search(r"\d+ jobs (?:to run|would run): (.*)", output)
    if plan is None:
        assert "nothing to be done" in output, output
        return Counter()
    return Counter({m[1]: int(m[2]) for m in re.finditer(r"(\w+) (\d+)", plan[1])})


def planned(project: Project, preset: str = "smoke") -> Counter[str]:
    """Jobs that a run would start now (settled first, as in a real run)."""
    return jobs(project.reproduce(preset, "--", "--dry-run"))


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_second_run_starts_no_job(toys: Project) -> None:
    assert jobs(toys.reproduce()) == Counter()
    assert "fresh" in toys.restudy("status", "--preset", "smoke")
    assert (toys.root / "report/smoke/index.html").is_file()


def test_edit_of_a_function_runs_what_depends_on_it(toys: Project) -> None:
    edit(toys.study("toy_one") / "experiment.py", "return float(((root", "return float(0.999 * ((root")
    states = toys.restudy("status", "--preset", "smoke", code=1)
    assert "restudy.studies.toy_one.experiment" in states and "toy_two" not in states
    found = jobs(toys.reproduce())
    expected = {"toy_one_descend": 1, "table": 2, "verdicts_of_study": 1, "figure": 2, "notebook": 1, "page": 1}
    assert found == Counter(expected)


def test_edit_of_a_figure_draws_it_and_nothing_else(toys: Project) -> None:
    edit(toys.study("toy_two") / "figures.py", 'xlabel="step"', 'xlabel="steps taken"')
    assert planned(toys) == Counter({"figure": 1, "notebook": 1, "page": 1})


def test_edit_of_a_shared_method_runs_its_users(toys: Project) -> None:
    style = toys.root / "src/restudy/plotting/style.py"
    edit(style, '"font.size": 9', '"font.size": 10')
    found = planned(toys)
    assert found["figure"] >= 2 and set(found) <= {"figure", "notebook", "page"}


def test_edit_of_a_claim_judges_again_and_trains_nothing(toys: Project) -> None:
    edit(toys.study("toy_one") / "claims.yaml", "tolerance: 1.0e-12", "tolerance: 1.0e-11")
    assert planned(toys) == Counter({"verdicts_of_study": 1, "figure": 1, "notebook": 1, "page": 1})


def test_edit_of_a_parameter_runs_its_study(toys: Project) -> None:
    edit(toys.study("toy_one") / "study.yaml", "instances: 2,", "instances: 3,")
    found = planned(toys)
    assert found["toy_one_descend"] == 1 and "toy_two_descend" not in found
    assert "parameters instances: 2 -> 3" in toys.restudy("explain", "results/smoke/toy_one/steps.parquet")


def test_edit_of_the_lock_runs_what_imports_the_package(toys: Project) -> None:
    lock = toys.root / "constraints.txt"
    lock.write_text(re.sub(r"(?m)^pyarrow==\S+", "pyarrow==0.0.1", lock.read_text()))
    assert "pyarrow" in toys.restudy("explain", "results/smoke/toy_one/shards/descend/s0/steps.parquet")
    message = toys.reproduce(code=1)
    assert "pyarrow" in message and "0.0.1 is locked" in message and "make setup" in message


@pytest.mark.parametrize("change", ["comment", "docstring", "touch", "commit", "other preset"])
def test_what_cannot_change_a_result_runs_nothing(toys: Project, change: str) -> None:
    source = toys.study("toy_one") / "experiment.py"
    if change == "comment":
        source.write_text("# a comment\n" + source.read_text())
    elif change == "docstring":
        edit(source, "Run both methods from the same start", "Run the two methods from one start")
    elif change == "touch":
        for path in [*toys.root.rglob("*.py"), *toys.root.glob("results/**/*.parquet")]:
            path.touch()
    elif change == "commit":
        toys.run("git", "init", "-q")
        toys.run("git", "add", "src")
        toys.run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
    else:
        edit(toys.study("toy_one") / "study.yaml", "seeds: 5", "seeds: 6")
    assert planned(toys) == Counter()


def test_undoing_an_edit_restores_nothing_wrong(toys: Project) -> None:
    before = toys.outputs()
    source = toys.study("toy_one") / "experiment.py"
    text = source.read_text()
    edit(source, "return float(((root", "return float(0.999 * ((root")
    toys.reproduce()
    assert toys.outputs() != before
    source.write_text(text)
    toys.reproduce()
    assert toys.outputs() == before


def test_tampered_result_is_set_aside_and_made_again(toys: Project) -> None:
    before = toys.outputs()
    one, two = toys.root / "results/smoke/toy_one/steps.parquet", toys.root / "results/smoke/toy_two/steps.parquet"
    # A number changed, the embedded facts kept: only the content sum can tell.
    table = read_table(one)
    values = pa.array([v + 1 for v in table["value"].to_pylist()])
    changed = table.set_column(table.schema.get_field_index("value"), "value", values)
    one.write_bytes(table_bytes(changed, table.schema.metadata[b"restudy"]))
    two.write_bytes(two.read_bytes()[:-100])
    message = toys.reproduce()
    assert message.count("set aside") == 2
    assert toys.outputs() == before
    assert any((toys.root / "work/set-aside").rglob("steps.parquet"))


def test_foreign_result_is_not_trusted(toys: Project) -> None:
    """A file of one study put in the other's place has a sound sum, but another fingerprint."""
    before = toys.outputs()
    source = toys.root / "results/smoke/toy_one/curves.parquet"
    (toys.root / "results/smoke/toy_two/curves.parquet").write_bytes(source.read_bytes())
    assert "set aside" in toys.reproduce()
    assert toys.outputs() == before


def test_lost_intermediate_is_made_again(toys: Project) -> None:
    before = toys.outputs()
    (toys.root / "results/smoke/toy_one/shards/descend/s0/steps.parquet").unlink()
    toys.reproduce()
    assert toys.outputs() == before


def test_every_record_holds_the_fingerprint(toys: Project) -> None:
    """A params function with another argument than wildcards would not be recorded, and every edit be missed."""
    states = json.loads(toys.restudy("status", "--preset", "smoke", "--json"))
    script = (
        "import sys; from pathlib import Path; from restudy.bench.records import recorded\n"
        "from restudy.bench.outputs import node_of; from restudy.provenance import fingerprint\n"
        "bad = [p for p in sys.argv[1:] if not recorded(Path(p), fingerprint(node_of(p)))]\n"
        "print(bad); sys.exit(bool(bad))"
    )
    toys.run("python", "-c", script, *[s["path"] for s in states])


def test_derived_preset_lands_beside_and_leaves_the_frozen_one_alone(toys: Project) -> None:
    before = toys.outputs()
    (toys.root / "presets.yaml").write_text(
        "mine:\n  inherits: smoke\n  seeds: 2\n  studies: {toy_one: {parameters: {descend: {instances: 3}}}}\n"
    )
    toys.reproduce("mine")
    after = toys.outputs()
    assert {k: v for k, v in after.items() if "/mine/" not in k} == before
    assert "results/mine/toy_one/shards/descend/s1/steps.parquet" in after
    assert "Not the frozen preset" in (toys.root / "report/mine/toy_one.html").read_text()


def test_bare_snakemake_sees_edits_and_refuses_results_without_records(toys: Project) -> None:
    bare = ("snakemake", "--profile", "workflow/profiles/default", "--cores", "1", "--config", "preset=smoke", "-n")
    assert jobs(toys.run(*bare)) == Counter()
    edit(toys.study("toy_one") / "experiment.py", "return float(((root", "return float(0.999 * ((root")
    assert jobs(toys.run(*bare, "toy_one"))["toy_one_descend"] == 1
    (toys.root / ".snakemake/metadata").rename(toys.root / "elsewhere")
    assert "restudy restore" in toys.run(*bare, code=1)


def test_restore_without_records_runs_nothing(toys: Project) -> None:
    (toys.root / ".snakemake").rename(toys.root / "elsewhere")
    assert "newly recorded" in toys.restudy("restore", "--preset", "smoke")
    assert jobs(toys.reproduce()) == Counter()


def test_jobs_that_another_preset_has_done_are_taken_over(toys: Project) -> None:
    (toys.root / "presets.yaml").write_text("more: {inherits: smoke, seeds: 2}\n")
    toys.reproduce("more", "--target", "verdicts")
    where = toys.root / "results/more/toy_one/shards/descend"
    taken = {s: json.loads((where / s / "steps.run.json").read_text()).get("taken_from") for s in ("s0", "s1")}
    assert taken == {"s0": "smoke", "s1": None}
    assert "fresh" in toys.restudy("status", "--preset", "more", "--study", "toy_one", code=None)
    toys.reproduce("more", "--target", "verdicts")
