"""The house rules that hold for every file."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from restudy.bench.dvc import pipelines
from restudy.provenance.closure import closure
from tests.conftest import ROOT, Project

SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Whatever is not among these holds methods, data or judgement, and knows neither studies nor the bench.
UPPER = {"bench", "catalog", "cli", "contract", "report", "scaffold", "studies", "tracking"}
LOWER = sorted(
    path.parent.name for path in (ROOT / "src" / "restudy").glob("*/__init__.py") if path.parent.name not in UPPER
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src")))
def test_rooms_are_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno <= 60, f"{node.name} is too long"
            if not node.name.startswith("_") and "scaffold" not in path.parts:
                assert ast.get_docstring(node) or isinstance(node.body[0], ast.FunctionDef) or _inner(path, node), (
                    node.name
                )


def _inner(path: Path, node: ast.AST) -> bool:
    """Functions inside functions need no docstring."""
    tree = ast.parse(path.read_text())
    outer = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(o.lineno < node.lineno and node.end_lineno <= o.end_lineno for o in outer)


def test_rule_files_are_short() -> None:
    assert (ROOT / "Snakefile").read_text().count("\n") <= 60
    for path in (ROOT / "workflow").rglob("*.smk"):
        assert path.read_text().count("\n") <= 150, path


@pytest.mark.parametrize("package", LOWER)
def test_imports_run_down(package: str) -> None:
    folder = ROOT / "src" / "restudy" / package
    for path in sorted(folder.rglob("*.py")):
        module = "restudy." + ".".join(path.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
        found = closure(module)
        assert not [m for m in found.modules if m.startswith(("restudy.studies.", "restudy.bench"))], module
        if package in ("claims", "results", "data"):
            assert "torch" not in found.third_party and "mlflow" not in found.third_party, module


@pytest.mark.workflow
def test_planning_imports_neither_torch_nor_mlflow(empty: Project) -> None:
    empty.restudy("new", "toy_study")
    blocked = empty.root / "blocked"
    for name in ("torch", "mlflow", "pandas", "matplotlib", "captum"):
        (blocked / name).mkdir(parents=True)
        (blocked / name / "__init__.py").write_text(f"raise ImportError('{name} is blocked')\n")
    empty.env["PYTHONPATH"] = f"{blocked}:{empty.root / 'src'}"
    empty.restudy("run", "--preset", "laptop", "--", "--dry-run")


def test_dvc_yaml_is_what_the_studies_say() -> None:
    for path, text in pipelines().items():
        assert path.read_text() == text, "run `restudy dvc-yaml`"


def test_no_parameter_reaches_a_shell_unquoted() -> None:
    for path in SOURCES:
        text = path.read_text()
        assert "shell=True" not in text and "os.system" not in text, path
        assert "yaml.load(" not in text and "pickle.load" not in text, path
        assert "torch.load(" not in text or "weights_only=True" in text, path
        assert ".cuda()" not in text and "get_device()" not in text, path


def test_readme_names_every_study(slug: str) -> None:
    assert f"`{slug}`" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    "command", ["run", "status", "explain", "estimate", "verdicts", "data", "restore", "new", "diff"]
)
def test_every_command_has_help(command: str) -> None:
    done = subprocess.run([sys.executable, "-m", "restudy.cli", command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("Usage:")
