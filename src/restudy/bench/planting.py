"""The planted nulls of a study, apart from judging: improving one makes no verdict anew."""

from __future__ import annotations

import importlib

from restudy.bench.judging import claims_of, statistics_of
from restudy.nulls import Null, planted
from restudy.provenance.closure import source_path


def nulls_of(slug: str) -> dict[str, Null]:
    """Return the planted nulls of a study's claims: those of its nulls.py, and those that its formulas give.

    They are no part of the frozen code: improving one amends no claim.
    """
    own: dict[str, Null] = {}
    if source_path(f"restudy.studies.{slug}.nulls"):
        own = importlib.import_module(f"restudy.studies.{slug}.nulls").planted_nulls
    return planted(claims_of(slug), statistics_of(slug), own)
