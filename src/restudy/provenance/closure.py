"""The import closure of a module, found by syntax tree, and a hash of its code.

Comments, docstrings, positions and empty fields do not count, so that an edit which cannot change a result does
not change the hash either. Imports under `if TYPE_CHECKING:` are never executed and are skipped. Computed imports
are not seen; the stage runner therefore compares the closure with the modules that were really loaded.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from restudy import layout
from restudy.errors import ConfigError

OURS = "restudy"
# What hands a stage its inputs and takes its outputs is no part of a result; studies import `bench.context` only.
PLUMBING = "restudy.bench"


@dataclass(frozen=True)
class Closure:
    """What a module imports, directly and through others of ours: name -> hash of its code."""

    modules: dict[str, str]
    third_party: frozenset[str]

    @property
    def digest(self) -> str:
        """One hash over the code of all modules."""
        text = "\n".join(f"{name} {digest}" for name, digest in self.modules.items())
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class _Parsed:
    digest: str
    ours: frozenset[str]
    third_party: frozenset[str]


@cache
def closure(module: str) -> Closure:
    """The closure of one of our modules, parents' `__init__` included.

    Raises:
        ConfigError: the module does not exist or has a syntax error (file and line are named).
    """
    seen: dict[str, _Parsed] = {}
    todo = [module]
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen[name] = _parse(name)
        parents = [name.rsplit(".", i)[0] for i in range(1, name.count(".") + 1)]
        todo.extend(n for n in (*seen[name].ours, *parents) if n not in seen)
    third = frozenset().union(*(p.third_party for p in seen.values()))
    return Closure({name: seen[name].digest for name in sorted(seen)}, third)


def source_path(module: str) -> Path | None:
    """The file of one of our modules, or None where there is none."""
    base = layout.PACKAGE.parent.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _parse(module: str) -> _Parsed:
    path = source_path(module)
    if path is None:
        raise ConfigError(f"no module {module}", where=str(layout.PACKAGE), remedy="check the name in study.yaml")
    try:
        tree = ast.parse(path.read_bytes(), filename=str(path))
    except SyntaxError as error:
        raise ConfigError(f"{error.msg}", where=f"{layout.relative(path)}:{error.lineno}") from None
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    ours: set[str] = set()
    third: set[str] = set()
    for name in _imports(tree, package):
        if name.partition(".")[0] == OURS:
            ours.update(_existing(name))
        else:
            third.add(name.partition(".")[0])
    return _Parsed(hashlib.sha256(canonical(tree).encode()).hexdigest(), frozenset(ours), frozenset(third))


def _existing(name: str) -> Iterator[str]:
    """The module itself, or its parent where the last part is an attribute; nothing of the bench (see PLUMBING)."""
    if name == PLUMBING or name.startswith(f"{PLUMBING}."):
        return
    if source_path(name):
        yield name
    elif source_path(name.rpartition(".")[0]):
        yield name.rpartition(".")[0]


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parent = package.rsplit(".", node.level - 1)[0] if node.level > 1 else package
                base = f"{parent}.{base}" if base else parent
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names if base.partition(".")[0] == OURS)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes, leaving out the bodies of `if TYPE_CHECKING:`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            for other in child.orelse:
                yield from _executed(other)
        else:
            yield from _executed(child)


def canonical(node: ast.AST | list[ast.AST]) -> str:
    """A dump of a syntax tree without positions, docstrings and empty fields, equal across Python versions."""
    if isinstance(node, list):
        return "[" + ",".join(_dump(n) for n in node) + "]"
    return _dump(node)


def _dump(value: object) -> str:
    if isinstance(value, ast.AST):
        fields = []
        for name, child in ast.iter_fields(value):
            if name in ("type_comment", "type_ignores", "kind", "ctx") or child is None or child == []:
                continue
            if name == "body" and isinstance(value, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                child = _without_docstring(child)
            fields.append(f"{name}={_dump(child)}")
        return f"{type(value).__name__}({','.join(fields)})"
    if isinstance(value, list):
        return "[" + ",".join(_dump(v) for v in value) + "]"
    return repr(value)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0] if body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return body[1:]
    return body
