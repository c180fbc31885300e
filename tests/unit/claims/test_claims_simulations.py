"""The engine must be able to say no: error rates of the real ``judge`` and ``judge_study``, fixed seeds."""

from __future__ import annotations

import importlib

import pytest

from . import engine_checks


@pytest.mark.parametrize(
    "check",
    [
        engine_checks.null_is_not_reproduced,
        engine_checks.large_effect_is_reproduced,
        engine_checks.reversed_effect_is_not_reproduced,
        engine_checks.level_is_five_percent,
        engine_checks.family_is_six_percent_at_most,
        engine_checks.extension_is_six_percent_at_most,
    ],
    ids=lambda check: check.__name__,
)
def test_error_rates(check) -> None:
    check()


def test_without_holm_four_nulls_err_in_more_than_15_percent(monkeypatch) -> None:
    monkeypatch.setattr(importlib.import_module("restudy.claims.holm"), "adjust", lambda p: list(p))
    assert engine_checks.any_of_four(engine_checks._four_nulls()) > 0.15
