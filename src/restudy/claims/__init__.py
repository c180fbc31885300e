"""The verdict engine: claims written before the run, replicates in, verdicts with statistics out.

Knows no study and no torch. ``docs/verdicts.md`` says how to read what comes out of it.
"""

from __future__ import annotations

from .schema import Claim, Gate, Part, load_claims, parse_claim
from .single import judge
from .study import StudyVerdicts, judge_study
from .table import PART_SCHEMA, VERDICT_SCHEMA, from_table, to_table
from .verdict import Verdict

__all__ = [
    "PART_SCHEMA",
    "VERDICT_SCHEMA",
    "Claim",
    "Gate",
    "Part",
    "StudyVerdicts",
    "Verdict",
    "from_table",
    "judge",
    "judge_study",
    "load_claims",
    "parse_claim",
    "to_table",
]
