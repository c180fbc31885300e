"""The import closure: what counts, what does not, and what it finds."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from restudy import layout
from restudy.errors import ConfigError
from restudy.provenance import closure as module
from restudy.provenance.closure import canonical, closure


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `restudy` of files that a test writes."""
    root = tmp_path / "restudy"
    root.mkdir()
    (root / "__init__.py").write_text("")
    monkeypatch.setattr(layout, "PACKAGE", root)
    module.closure.cache_clear()
    module._parse.cache_clear()
    yield root
    module.closure.cache_clear()
    module._parse.cache_clear()


def write(package: Path, **files: str) -> None:
    for name, text in files.items():
        path = package.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.relative_to(package).parents:
            (package / folder / "__init__.py").touch()
        path.write_text(text)
    module.closure.cache_clear()
    module._parse.cache_clear()


def digest(source: str) -> str:
    return canonical(ast.parse(source))


@pytest.mark.parametrize(
    "other",
    [
        "def f(x):\n    # why\n    return x + 1\n",
        'def f(x):\n    """What."""\n    return x + 1\n',
        "\n\n\ndef f( x ):\n\n    return (x + 1)\n",
        '"""Module."""\ndef f(x):\n    return x + 1\n',
        "def f(x):\n    return x + 1  # type: ignore\n",
    ],
)
def test_what_cannot_change_a_result_does_not_count(other: str) -> None:
    assert digest("def f(x):\n    return x + 1\n") == digest(other)


@pytest.mark.parametrize(
    "other",
    [
        "def f(x):\n    return x + 2\n",
        "def f(x, y=0):\n    return x + 1\n",
        "def f(x):\n    'a'\n    'b'\n    return x + 1\n",
    ],
)
def test_what_can_change_a_result_counts(other: str) -> None:
    assert digest("def f(x):\n    return x + 1\n") != digest(other)


def test_imports_are_followed(package: Path) -> None:
    write(
        package,
        a="from restudy.b import f\nimport numpy as np\n",
        b="from .c.d import g\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from restudy import unused\n",
        c__d="def g():\n    from restudy import e\n    import scipy.stats\n",
        e="x = 1\n",
        unused="y = 1\n",
    )
    found = closure("restudy.a")
    assert set(found.modules) == {"restudy", "restudy.a", "restudy.b", "restudy.c", "restudy.c.d", "restudy.e"}
    assert {n for n in found.third_party if n not in sys.stdlib_module_names} == {"numpy", "scipy"}


def test_an_edit_below_changes_the_digest_above(package: Path) -> None:
    write(package, a="from restudy.b import f\n", b="def f(): return 1\n")
    before = closure("restudy.a").digest
    write(package, b="def f():\n    '''Said better.'''\n    return 1\n")
    assert closure("restudy.a").digest == before
    write(package, b="def f(): return 2\n")
    assert closure("restudy.a").digest != before


def test_relative_imports_from_parents(package: Path) -> None:
    write(package, x__y__z="from ..w import f\nfrom . import v\n", x__w="def f(): ...\n", x__y__v="")
    assert {"restudy.x.w", "restudy.x.y.v"} <= set(closure("restudy.x.y.z").modules)


def test_the_bench_is_plumbing(package: Path) -> None:
    write(package, a="from restudy.bench.context import Context\n", bench__context="x = 1\n")
    assert not [name for name in closure("restudy.a").modules if "bench" in name]


def test_errors_name_file_and_line(package: Path) -> None:
    write(package, a="x = 1\ndef f(:\n")
    with pytest.raises(ConfigError, match=r"a\.py:2"):
        closure("restudy.a")
    with pytest.raises(ConfigError, match=r"no module restudy\.zzz"):
        closure("restudy.zzz")
