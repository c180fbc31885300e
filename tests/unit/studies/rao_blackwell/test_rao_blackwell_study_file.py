"""What study.yaml must say together."""

from __future__ import annotations

from restudy.catalog import study

PARAMETERS = study("rao_blackwell").file.parameters


def test_every_arm_has_a_step_size() -> None:
    for stage in ("semi_supervised", "moving_digit"):
        schemas = PARAMETERS[stage]
        assert set(schemas["arms"]["items"]["enum"]) == set(schemas["learning_rates"]["default"])


def test_the_search_for_step_sizes_was_equal() -> None:
    assert set(PARAMETERS["semi_supervised"]["learning_rates"]["default"].values()) == {0.001}
