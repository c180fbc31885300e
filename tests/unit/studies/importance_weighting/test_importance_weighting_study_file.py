"""What study.yaml must say together."""

from __future__ import annotations

import re

import pytest

from restudy.catalog import plan, study
from restudy.studies.importance_weighting.arms import PATTERN, Arm, largest_k, parse_swap

STUDY = study("importance_weighting")


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_a_preset_trains_what_its_claims_compare(preset: str) -> None:
    planned = plan("importance_weighting", preset)
    values = {name: planned.parameters(name) for name in planned.stages}
    arms, swaps = set(values["train"]["arms"]), values["train"]["swaps"]
    k = largest_k(arms)
    assert {"vae_k1", f"iwae_k{k}", f"vae_k{k}", "vae_k1_fixed"} <= arms
    ends = {"vae_k1", f"iwae_k{k}"}
    assert set(swaps) == {f"{one}_then_{other}" for one in ends for other in ends}
    assert all(parse_swap(name)[0].name in arms for name in swaps)
    assert set(values["evaluate"]["bound_arms"]) == ends
    for stage in values:
        if "train_images" in values[stage]:
            assert values[stage]["train_images"] == values["train"]["train_images"]
            assert values[stage]["test_images"] == values["train"]["test_images"]
    three_quarters = 0.75 * values["train"]["steps"]
    assert three_quarters % values["train"]["measure_every"] == 0 or preset == "smoke"


def test_names_of_arms_match_the_schema() -> None:
    schema = STUDY.file.parameters["train"]["arms"]
    assert schema["items"]["pattern"] == PATTERN
    assert all(re.match(PATTERN, name) and Arm.parse(name).name == name for name in schema["default"])
