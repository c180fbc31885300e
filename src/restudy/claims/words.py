"""The words of the scheme: kinds, units, scales, presets, verdicts and reasons."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

Kind = Literal[
    "direction",
    "threshold",
    "non_inferiority",
    "value",
    "no_difference",
    "ordering",
    "trend",
    "exact",
    "qualitative",
    "parts",
]
Scale = Literal["identity", "fisher_z", "logit", "log"]
Unit = Literal["seed", "draw", "item"]
Preset = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$")]
"""A preset's name; that the study has it is checked where the study is known."""
Op = Literal[">=", ">", "<=", "<", "=="]

REPRODUCED: Final = "reproduced"
PARTIALLY: Final = "partially"
NOT_REPRODUCED: Final = "not reproduced"
INCONCLUSIVE: Final = "inconclusive"
NOT_TESTABLE: Final = "not testable"
ERROR: Final = "error"
INCOMPLETE: Final = "incomplete"
VERDICTS: Final = (REPRODUCED, PARTIALLY, NOT_REPRODUCED, INCONCLUSIVE, NOT_TESTABLE, ERROR)

STATISTICAL_KINDS: Final = frozenset(
    {"direction", "threshold", "non_inferiority", "value", "no_difference", "ordering", "trend"}
)
EQUIVALENCE_KINDS: Final = frozenset({"value", "no_difference"})

ALPHA: Final = 0.05
"""One-sided error of each bound at a study with one look."""
ALPHA_EXTENSION: Final = 0.03
"""One-sided error of each bound, at both looks, of a study that declares an extension."""
MIN_REPLICATES: Final = 5
"""Below this number of replicates nothing is decided."""
MAX_PRIMARY: Final = 4
"""Most primary claims of one paper."""

WIDTH: Final = "width"
GATE: Final = "gate"
CONTROL: Final = "control"
