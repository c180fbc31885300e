"""What study.yaml must say together."""

from __future__ import annotations

from restudy.catalog import plan


def test_photographs_give_enough_scenes() -> None:
    assert plan("relevance_evaluation", "photos").parameters("photos")["stamps_used"] >= 100
