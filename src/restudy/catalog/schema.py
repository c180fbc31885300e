"""What a study.yaml may say: models that refuse unknown keys and wrong types in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from restudy.catalog.forms import columns_of, cost_lines, with_functions
from restudy.errors import ConfigError

STANDARD_PRESETS = ("smoke", "laptop", "workstation", "paper")
Name = str
Numerics = Literal["native", "portable"]
DEFAULT_NUMERICS: Numerics = "native"
M = TypeVar("M", bound="Strict")
SAFE = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same safe loader, ten times faster in C


class Strict(BaseModel):
    """A mapping without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Citation(Strict):
    """Where the paper was published."""

    authors: str
    title: str
    venue: str
    year: int = Field(ge=1900, le=2100)
    arxiv: str | None = None
    url: str | None = None


class Deviation(Strict):
    """One difference between the paper's experiment and ours."""

    what: str
    paper: str
    here: str


class Stage(Strict):
    """One stage: a function of the study's folder, what it needs and what it returns.

    `function`: `experiment.<stage>` by default. `tables`: their columns, name -> type in order (see `columns_of`).
    `presets`: those that run it, all by default. `group`: the optional dependency group that it imports.
    """

    function: str = Field(pattern=r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$")
    says: str = ""
    needs: list[Name] = []
    data: list[Name] = []
    shards: list[Name] = []
    tables: Annotated[dict[Name, dict[Name, str]], BeforeValidator(columns_of)] = {}
    tensors: list[Name] = []
    volatile: list[Name] = []
    presets: list[Name] = []
    group: Name = ""
    memory_mb: int = Field(default=2000, ge=100, le=512_000)


class Axis(Strict):
    """A parameter whose values split a stage into jobs."""

    values: list[str | int | float] = Field(min_length=1)
    default: list[str | int | float] = Field(min_length=1)
    says: str = ""


class Figure(Strict):
    """A figure of the paper: the function that draws it from tables.

    `function`: by default `figures.` and the name without its number (`F1_paths`: `figures.paths`).
    """

    function: str = Field(pattern=r"^[a-z_][a-z0-9_]*\.[a-z_][a-z0-9_]*$")
    tables: list[Name]
    says: str
    alt: str
    where: str = ""
    presets: list[Name] = []


class Cost(Strict):
    """What a stage of a preset is said to cost."""

    stage: Name
    ms: float = Field(ge=0)

    @property
    def core_minutes(self) -> float:
        """CPU minutes on one core."""
        return self.ms / 60_000


class Preset(Strict):
    """The size of a run: seeds, parameters that differ from the defaults, axis values.

    `cost`: CPU time by stage as sums of products, `{train: 5 x 470 x 100 ms + 2000 ms}`.
    `numerics`: `native`, or `portable` for the kernels of AVX2 on every x86 CPU (slower; see provenance/numerics.py).
    """

    seeds: int = Field(ge=1, le=1000)
    seeds_per_job: int = Field(default=1, ge=0)
    budget_core_minutes: float = Field(gt=0)
    numerics: Numerics = DEFAULT_NUMERICS
    parameters: dict[Name, dict[str, Any]] = {}
    axes: dict[Name, list[str | int | float]] = {}
    cost: Annotated[list[Cost], BeforeValidator(cost_lines)] = []


class StudyFile(Strict):
    """A whole study.yaml."""

    title: str
    citation: Citation
    summary: str
    deviations: list[Deviation] = []
    stages: dict[Name, Stage] = Field(min_length=1)
    parameters: dict[Name, dict[str, dict[str, Any]]] = {}
    axes: dict[Name, Axis] = {}
    figures: dict[Name, Figure] = {}
    devices: dict[Literal["cpu", "cuda"], dict[Name, dict[str, Any]]] = {}
    presets: dict[Name, Preset]
    extension: int | None = Field(default=None, ge=6)
    picture: Name | None = None

    @model_validator(mode="before")
    @classmethod
    def _name_functions(cls, content: Any) -> Any:
        return with_functions(content)


class DerivedPreset(Strict):
    """A user's variation of a preset, from presets.yaml."""

    inherits: str
    seeds: int | None = Field(default=None, ge=1, le=1000)
    seeds_per_job: int | None = Field(default=None, ge=0)
    numerics: Numerics | None = None
    studies: dict[Name, DerivedStudy] = {}


class DerivedStudy(Strict):
    """What a derived preset changes in one study."""

    seeds: int | None = Field(default=None, ge=1, le=1000)
    parameters: dict[Name, dict[str, Any]] = {}
    axes: dict[Name, list[str | int | float]] = {}


def read_yaml(path: Path) -> Any:
    """Load a YAML file safely.

    Raises:
        ConfigError: unreadable, or not YAML; names file and line.
    """
    try:
        return SAFE(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as error:
        raise ConfigError(error.strerror or str(error), where=str(path), remedy="check the path") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise ConfigError(str(problem), where=f"{path}{line}", remedy="mend the YAML") from None


def validated(model: type[M], content: Any, where: str) -> M:
    """Validate `content` against `model`.

    Raises:
        ConfigError: the first fault, in one line naming file, key, value and what is allowed.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first, *others = error.errors(include_url=False)
        key = ".".join(str(part) for part in first["loc"]) or "(the file)"
        value = first.get("input")
        shown = f" (got {value!r:.60})" if not isinstance(value, dict | list) else ""
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            parent: Any = model
            message = f"unknown key; allowed: {', '.join(_allowed(parent, first['loc']))}"
        more = f" (and {len(others)} more)" if others else ""
        raise ConfigError(f"{key}: {message}{shown}{more}", where=where) from None


def _allowed(model: Any, location: tuple[int | str, ...]) -> list[str]:
    """Field names allowed where an unknown key was found."""
    for part in location[:-1]:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(part)].annotation if str(part) in model.model_fields else None
            continue
        candidates = [a for a in getattr(model, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)]
        model = candidates[-1] if candidates else None
    while model is not None and not (isinstance(model, type) and issubclass(model, BaseModel)):
        candidates = [a for a in getattr(model, "__args__", ()) if isinstance(a, type) and issubclass(a, BaseModel)]
        model = candidates[-1] if candidates else None
    return sorted(model.model_fields) if model is not None else []
