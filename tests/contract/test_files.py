"""What a study's files must say, without running anything."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re

import pytest

from restudy.bench.judging import claims_of, lock_id
from restudy.bench.planting import nulls_of
from restudy.catalog import plan, study
from restudy.catalog.schema import STANDARD_PRESETS
from restudy.claims.statistics import missing, named
from restudy.provenance.closure import closure

MAX_PRIMARY = 4
# A reader should know a study in an evening: what a new one may have at most.
CEILINGS = {"stages": 4, "claims but exact ones": 20, "statistics": 45, "figures": 6, "files": 11, "lines": 1100}
FIRST_NINE = (
    *("batch_norm", "batch_size", "counterfactual_infill", "head_pruning", "importance_weighting", "neural_ode"),
    *("rao_blackwell", "relevance_evaluation", "saliency_sanity"),
)
FIRST_CEILINGS = {"files": 12, "lines": 1350}
# study -> what it has more of, how many at most, and why
EXCEPTIONS: dict[str, dict[str, tuple[int, str]]] = {
    "batch_size": {"lines": (1520, "reading a sweep (trials.py): rules against tuning, budgets, whether it is sound")},
    "head_pruning": {
        "lines": (1870, "two tracks: a drawn language and real text, with a claim of its own (H10)"),
        "files": (13, "text.py prepares the real text and must load no torch"),
    },
    "neural_ode": {
        "lines": (1940, "four experiments: classifiers, flows on the plane, spirals, event times"),
        "files": (13, "one file each for the flows and for the time series"),
    },
    "rao_blackwell": {"lines": (1440, "two VAEs besides the toy that can be enumerated")},
    "relevance_evaluation": {"lines": (1830, "photographs on EfficientNet-Lite0 are a track of their own; 33 claims")},
    "saliency_sanity": {"lines": (1630, "photographs on EfficientNet-Lite0 are a track of their own")},
}


def statistics(slug: str):
    return importlib.import_module(f"restudy.studies.{slug}.statistics")


def sizes(slug: str) -> dict[str, int]:
    """What a reader meets in a study."""
    file, claims = study(slug).file, claims_of(slug)
    files = [path for path in study(slug).folder.iterdir() if path.is_file()]
    python = [path for path in files if path.suffix == ".py"]
    return {
        "stages": len(file.stages),
        "claims but exact ones": sum(claim.kind != "exact" for claim in claims),
        "statistics": len(named(claims)),
        "figures": len(file.figures),
        "files": len(files),
        "lines": sum(path.read_bytes().count(b"\n") for path in python),
    }


def test_a_study_is_small(slug: str) -> None:
    found, exceptions = sizes(slug), EXCEPTIONS.get(slug, {})
    for what, ceiling in (FIRST_CEILINGS if slug in FIRST_NINE else CEILINGS).items():
        if what in exceptions:
            most, why = exceptions[what]
            assert found[what] > ceiling, f"{slug} has {found[what]} {what}: the exception is no longer needed"
            assert found[what] <= most and why, f"{slug} has {found[what]} {what}, {most} are excepted"
        else:
            assert found[what] <= ceiling, f"{slug} has {found[what]} {what}, {ceiling} are allowed"


def test_exceptions_are_of_the_first_nine_only() -> None:
    assert set(EXCEPTIONS) <= set(FIRST_NINE)
    assert all(set(found) <= set(FIRST_CEILINGS) for found in EXCEPTIONS.values())


@pytest.mark.parametrize("preset", STANDARD_PRESETS)
def test_declared_cost_is_within_the_budget(slug: str, preset: str) -> None:
    spec = plan(slug, preset).spec
    cost = sum(line.core_minutes for line in spec.cost)
    assert 0 < cost <= spec.budget_core_minutes, f"{slug} {preset}: {cost:.1f} of {spec.budget_core_minutes}"


def test_every_running_stage_has_a_cost(slug: str) -> None:
    for preset in STANDARD_PRESETS:
        found = plan(slug, preset)
        assert {line.stage for line in found.spec.cost} == set(found.stages), preset


def test_stage_functions_take_the_declared_parameters(slug: str) -> None:
    found = study(slug)
    for name, stage in found.file.stages.items():
        module, _, function = stage.function.partition(".")
        signature = inspect.signature(getattr(importlib.import_module(f"restudy.studies.{slug}.{module}"), function))
        keywords = {n for n, p in signature.parameters.items() if p.kind is p.KEYWORD_ONLY}
        declared = {*found.file.parameters.get(name, {}), *stage.shards}
        handed_on = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())  # to a dataclass, which checks
        assert keywords <= declared if handed_on else keywords == declared, name
        assert list(signature.parameters)[0] == "context", name


def test_laptop_has_enough_seeds(slug: str) -> None:
    assert plan(slug, "laptop").seeds >= 5


def test_claims_name_statistics_that_exist(slug: str) -> None:
    assert not missing(claims_of(slug), statistics(slug))


def test_primary_claims_are_few_and_have_a_planted_null(slug: str) -> None:
    primary = [claim.id for claim in claims_of(slug) if claim.primary]
    assert 1 <= len(primary) <= MAX_PRIMARY
    assert set(primary) <= set(nulls_of(slug)), f"without a planted null: {set(primary) - set(nulls_of(slug))}"


def test_planted_nulls_are_no_part_of_the_frozen_code(slug: str) -> None:
    assert f"restudy.studies.{slug}.nulls" not in closure(f"restudy.studies.{slug}.statistics").modules
    assert set(nulls_of(slug)) <= {claim.id for claim in claims_of(slug)}


def test_claims_are_frozen_as_they_are(slug: str) -> None:
    assert lock_id(slug), f"run `restudy claims freeze {slug} --reason ...`"


def test_statistics_and_figures_know_no_torch(slug: str) -> None:
    figures = {f.function.partition(".")[0] for f in study(slug).file.figures.values()}
    for module in ("statistics", *figures):
        assert not {"torch", "mlflow"} & closure(f"restudy.studies.{slug}.{module}").third_party, module
    assert closure(f"restudy.studies.{slug}.statistics").third_party <= {
        *("numpy", "pyarrow", "__future__", "collections", "functools", "math", "typing", "dataclasses", "itertools"),
        "re",
    }


def test_rules_of_its_own_are_short_and_hold_no_logic(slug: str) -> None:
    path = study(slug).folder / "rules.smk"
    text = path.read_text() if path.is_file() else ""
    assert len(text.splitlines()) <= 150
    assert not re.search(r"^\s*(def|import|from|for|if|class|lambda)\b|lambda", text, re.MULTILINE)
    assert not re.search(r"^[A-Za-z_]\w*\s*=", text, re.MULTILINE), "a module-level name is shared by all studies"
    assert all(name.startswith(slug) for name in re.findall(r"^(?:use rule \w+ as|rule) (\w+)", text, re.MULTILINE))


def test_notebook_is_committed_without_output(slug: str) -> None:
    text = (study(slug).folder / "notebook.md").read_text()
    assert 'tags=["parameters"]' in text and "image/png" not in text


def test_notebook_names_tables_and_figures_that_the_study_declares(slug: str) -> None:
    text = (study(slug).folder / "notebook.md").read_text()
    file = study(slug).file
    tables = {table for stage in file.stages.values() for table in stage.tables} | {"verdicts", "verdict_parts"}
    named = re.findall(r"\b(?:table|frame|pivot|has)\(\s*\"(\w+)\"", text)
    assert named and set(named) <= tables
    shown = [
        name
        for names in re.findall(r"\b(?:figure|picture)\(([^)]*)\)", text)
        for name in re.findall(r"\"(\w+)\"", names)
    ]
    assert shown and set(shown) <= set(file.figures)


def test_docstring_tells_the_paper(slug: str) -> None:
    docstring = ast.get_docstring(ast.parse((study(slug).folder / "__init__.py").read_text()))
    assert docstring and len(docstring.split()) >= 40


def test_figures_have_captions_and_alt_text(slug: str) -> None:
    for name, figure in study(slug).file.figures.items():
        assert len(figure.alt.split()) >= 5 and figure.says.endswith("."), name


def test_study_file_is_plain_data(slug: str) -> None:
    assert json.dumps(study(slug).file.model_dump())


def test_stages_know_nothing_of_the_bench_but_the_context(slug: str) -> None:
    """The bench is no part of a fingerprint, so nothing of it may decide a result."""
    for path in study(slug).folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {n for n in names if n.startswith("restudy.bench")} <= {"restudy.bench.context"}, path.name
