"""What study.yaml must say together."""

from __future__ import annotations

from restudy.catalog import plan, study


def test_trained_and_exchanged_nets_have_the_same_sizes() -> None:
    for preset in study("neural_ode").file.presets:
        planned = plan("neural_ode", preset)
        found = {stage: planned.parameters(stage) for stage in ("classify", "solvers")}
        for name in ("side", "channels", "train_images", "tolerance"):
            assert found["classify"][name] == found["solvers"][name], (preset, name)
        assert {0.01, 0.001, 1e-8} <= set(found["solvers"]["tolerances"])
        assert set(found["classify"]["arms"]) <= set(found["classify"]["learning_rates"])
