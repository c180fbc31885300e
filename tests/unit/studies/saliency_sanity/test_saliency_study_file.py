"""What study.yaml must say together."""

from __future__ import annotations

from restudy.catalog import plan, study


def test_nets_of_both_stages_agree() -> None:
    for preset in study("saliency_sanity").file.presets:
        found = plan("saliency_sanity", preset)
        for name in ("channels", "hidden", "mlp_hidden", "init"):
            assert found.parameters("train")[name] == found.parameters("measure")[name]
