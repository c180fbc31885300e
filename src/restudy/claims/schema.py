"""What ``claims.yaml`` may say: the models of a claim, its parts and its gates, and reading the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from ..errors import ClaimError, ConfigError
from . import needs
from .words import MAX_PRIMARY, STATISTICAL_KINDS, Kind, Op, Preset, Scale, Unit


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a number is needed, not true or false")
    return value


Number = Annotated[float, BeforeValidator(_no_bool), Field(allow_inf_nan=False)]
SIZED_PRESETS: Final = ("laptop", "workstation", "paper")
ALL_PRESETS: Final = ("smoke", *SIZED_PRESETS)
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Gate(_Model):
    """A precondition: the mean of ``statistic`` over all planned replicates, compared with ``value``."""

    statistic: Name
    op: Op
    value: Number


class Paper(_Model):
    """What the paper prints. ``recalled`` values are context and never a target."""

    value: Number | None = None
    sd: Positive | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    source: Literal["read", "recalled"]
    note: str | None = None


class _Decision(_Model):
    """The fields that a claim and a part share: what is measured and what it is compared with."""

    kind: Kind
    statistic: Name | None = None
    reference: Name | None = None
    control: Name | None = None
    paired: bool = True
    sesoi: Positive | None = None
    margin: Positive | None = None
    bound: Number | None = None
    side: Literal["above", "below"] | None = None
    tolerance: NotNegative | None = None
    scale: Scale = "identity"
    x_scale: Literal["linear", "log"] = "linear"
    shape: Literal["monotone", "linear"] = "monotone"
    order: tuple[str, ...] | None = None
    nan_as: Number | None = None
    paper: Paper | None = None
    scale_free: bool = False


class Part(_Decision):
    """One statement of a claim that is made of several; ``kind`` and ``scale`` default to the claim's."""

    name: Name

    @model_validator(mode="after")
    def _check(self) -> Part:
        if self.kind == "parts":
            raise ValueError("kind: a part has a kind of its own, not 'parts'")
        if self.kind != "qualitative" and self.statistic is None:
            raise ValueError(f"statistic: part {self.name} names none")
        needs.check(self, self.name)
        return self


class Claim(_Decision):
    """One claim of a paper, written before the run. Field by field: ``docs/verdicts.md``.

    ``presets``: where it is judged; by default ``exact`` claims at every preset, others from laptop on.
    """

    id: Name
    says: Name
    where: Name
    mission: tuple[str, ...]
    unit: Unit = "seed"
    why: Name
    primary: bool = False
    presets: Annotated[tuple[Preset, ...], Field(min_length=1)]
    gate: tuple[Gate, ...] = ()
    parts: tuple[Part, ...] = ()
    exploratory: bool = False
    expected_fragile: bool = False

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, data: Any) -> Any:
        data = needs.inherit(data)
        if isinstance(data, Mapping) and "presets" not in data:
            data = {**data, "presets": ALL_PRESETS if data.get("kind") == "exact" else SIZED_PRESETS}
        return data

    @model_validator(mode="after")
    def _check(self) -> Claim:
        needs.check_claim(self)
        if not self.parts:
            needs.check(self, "")
        return self

    @property
    def statistical(self) -> bool:
        """True when chance enters: any kind but ``exact`` and ``qualitative``, in the claim or a part."""
        kinds = [part.kind for part in self.parts] or [self.kind]
        return any(kind in STATISTICAL_KINDS for kind in kinds)


Statement = Claim | Part
"""Whatever the engine tests: a claim without parts, or one part of a claim."""

_DEFAULTS: dict[str, Any] = {
    "id": "unnamed",
    "says": "(not said)",
    "where": "(not said)",
    "mission": (),
    "why": "(not said)",
}


def _one_line(error: ValidationError, data: Mapping[str, Any]) -> str:
    """The first fault of a validation error as ``field: what is wrong (got value)``."""
    fault = error.errors()[0]
    field = ".".join(str(step) for step in fault["loc"])
    message = fault["msg"].removeprefix("Value error, ")
    if not field:
        return message
    if fault["type"] == "extra_forbidden":
        allowed = ", ".join(sorted(Part.model_fields if "parts" in field else Claim.model_fields))
        return f"{field}: unknown field (got {fault['input']!r}); allowed are {allowed}"
    if fault["type"] == "missing":
        return f"{field}: required field is missing"
    return f"{field}: {message} (got {fault['input']!r})"


def parse_claim(data: Mapping[str, Any] | Claim, *, strict: bool = False) -> Claim:
    """A validated claim from the fields of ``claims.yaml``.

    ``strict=False`` fills the descriptive fields (``says``, ``where``, ``mission``, ``why``) when they are
    absent; the fields that a decision needs are never filled.
    Raises :class:`ClaimError` in one line: claim, field, value, what is allowed.
    """
    if isinstance(data, Claim):
        return data
    if not isinstance(data, Mapping):
        raise ClaimError(f"a claim is a mapping of fields, not {type(data).__name__}", where="claim")
    fields = dict(data) if strict else {**_DEFAULTS, **data}
    if not strict and "kind" not in data and data.get("parts"):
        fields["kind"] = "parts"
    if not strict and "presets" not in data and data.get("kind") == "value":
        fields["presets"] = ("paper",)
    where = f"claim {fields.get('id', '(without id)')}"
    try:
        return Claim.model_validate(fields)
    except ValidationError as error:
        raise ClaimError(_one_line(error, fields), where=where, remedy="see docs/verdicts.md") from None


def load_claims(path: str | Path) -> list[Claim]:
    """The claims of a ``claims.yaml``, in the file's order.

    Raises :class:`ConfigError` in one line (file, claim, field, value, what is allowed) for a file that
    cannot be read, a claim that is not valid, an id used twice, or more than four primary claims.
    """
    path = Path(path)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=str(path)) from None
    except yaml.YAMLError as error:
        raise ConfigError("not YAML: " + " ".join(str(error).split()), where=str(path)) from None
    if not isinstance(data, list) or not data:
        raise ConfigError("a list of claims is needed", where=str(path), remedy="begin each with '- id:'")
    claims = []
    for entry in data:
        try:
            claims.append(parse_claim(entry, strict=True))
        except ClaimError as error:
            raise ConfigError(str(error), where=str(path)) from None
    check_set(claims, str(path))
    return claims


def check_set(claims: Sequence[Claim], where: str = "claims") -> None:
    """Refuse (ConfigError) two claims of one id, or more than four primary claims."""
    ids = [claim.id for claim in claims]
    for name in ids:
        if ids.count(name) > 1:
            raise ConfigError(f"claim {name}: id: used {ids.count(name)} times", where=where)
    primary = [claim.id for claim in claims if claim.primary]
    if len(primary) > MAX_PRIMARY:
        raise ConfigError(
            f"primary: {len(primary)} claims are primary ({', '.join(primary)}); at most {MAX_PRIMARY} are allowed",
            where=where,
            remedy="with more, too little power is left at five seeds",
        )
