"""What study.yaml must say together."""

from __future__ import annotations

from restudy.catalog import study
from restudy.studies.batch_size.figures import NAMES
from restudy.studies.batch_size.models import parse

STUDY = study("batch_size")
DEFAULTS = {name: schema["default"] for name, schema in STUDY.file.parameters["sweep"].items()}


def test_every_workload_has_a_name_a_goal_batch_sizes_and_a_budget() -> None:
    for workload in STUDY.file.axes["workload"].values:
        found = parse(str(workload))
        assert workload in NAMES and found.goal in DEFAULTS["goals"]
        assert found.source in DEFAULTS["batch_sizes"] and found.source in DEFAULTS["first_budget"]


def test_the_full_batch_and_a_quarter_of_it_are_on_the_grid_of_the_digits() -> None:
    assert DEFAULTS["batch_sizes"]["mnist5k"][-2:] == [750, 3000]
