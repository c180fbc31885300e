"""Stage `check`: the decision rule run on small nets, a test of the program and of no claim about trained models.

Two small nets, a CNN and an MLP, learn a few hundred digits; every saliency method of the library, and the two control
maps, go through both sanity checks under all four metrics. A map that depends on the image alone must be rejected by
both, the plain gradient accepted by both, and no method may be left without a decision. In `decisions` the test
`random_nets` compares two untrained nets and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.data import mnist5k
from restudy.methods.attribution import applicable, methods
from restudy.methods.models import MLP, SmallCNN, derive_seed
from restudy.methods.training import train_classifier

from .experiment import HOG_CELL, References, Row, permuted
from .models import (
    CONTROLS,
    Explained,
    Settings,
    as_inputs,
    chosen,
    maps,
    predicted,
    randomized,
    steps,
    top_down_layers,
)
from .statistics import METRICS, NOT_APPLICABLE, decide

SETTINGS = Settings(ig_steps=4, samples=4, sg_ig_samples=2, sg_ig_steps=2, batch_size=64)
STATES = {"parameters": "randomized", "data": "permuted"}


@dataclass(frozen=True)
class Digits:
    """Images (N, 1, 28, 28) and labels (N,) to learn from, and the images to explain."""

    images: Tensor
    labels: Tensor
    shown: Tensor


def check(context: Context, *, train_images: int, epochs: int, permuted_epochs: int, images: int) -> Outputs:
    """Run every method through both checks on two small nets; returns the table `decisions`."""
    data = mnist5k.load()
    index = chosen(train_images, len(data.train_labels), 0, "check").numpy()
    asked = chosen(images, len(data.test_labels), 0, "check test").numpy()
    digits = Digits(
        as_inputs(data.train_images[index]),
        torch.tensor(data.train_labels[index]),
        as_inputs(data.test_images[asked]),
    )
    rows: list[Row] = []
    for name in ("cnn", "mlp"):
        found = _nets(name, digits, epochs, permuted_epochs)
        rows += _decisions(name, found, digits.shown)
    return {"decisions": rows}


def _build(name: str, seed: int) -> SmallCNN | MLP:
    if name == "cnn":
        return SmallCNN((6, 12), 32, 10, seed=seed)
    return MLP((28 * 28, 32, 10), seed=seed)


def _nets(name: str, digits: Digits, epochs: int, permuted_epochs: int) -> dict[str, nn.Module]:
    """The explained net, its retraining, a net that learned permuted labels, and two random ones."""
    found: dict[str, nn.Module] = {}
    for arm, passes in (("true", epochs), ("retrain", epochs), ("permuted", permuted_epochs)):
        labels = permuted(digits.labels, 0) if arm == "permuted" else digits.labels
        seed = derive_seed(0, "check", "true" if arm == "true" else "retrain")
        model = _build(name, seed)
        train_classifier(model, digits.images, labels, epochs=passes, batch_size=32, learning_rate=3e-3, seed=seed)
        found[arm] = model
    layers = top_down_layers(found["true"])
    *_, first, second = steps(layers, orders=["top_down"], top_redraws=1, full_redraws=2)
    found["randomized"] = randomized(found["true"], first, 0)
    found["another"] = randomized(found["true"], second, 0)
    return found


def _decisions(name: str, found: Mapping[str, nn.Module], shown: Tensor) -> Iterator[Row]:
    listed = [m for m, method in methods().items() if not method.input_only]
    usable = [m for m in listed if applicable(found["true"], m, shown)[0]]
    target = predicted(found["true"], shown, SETTINGS.batch_size)
    question = Explained(shown, target, noise_seed=1)
    got = {
        arm: maps(model, question, usable, SETTINGS, control_seed=derive_seed(0, "check", arm))
        for arm, model in found.items()
    }
    trained, random = (References(got[arm], None, HOG_CELL) for arm in ("true", "randomized"))
    like = {arm: _by_method(trained.rows({}, got[arm], METRICS)) for arm in ("retrain", "randomized", "permuted")}
    like["another"] = _by_method(random.rows({}, got["another"], METRICS))
    for method in (*listed, *CONTROLS):
        role = "control" if method in CONTROLS else "method"
        for metric in METRICS:
            key, where = (method, metric), {"model": name, "method": method, "role": role, "metric": metric}
            for test, arm in STATES.items():
                if key not in like[arm]:
                    nothing: Row = {"changed": None, "yardstick": None, "decision": NOT_APPLICABLE}
                    yield where | {"test": test} | nothing
                    continue
                changed, yardstick = like[arm][key], like["retrain"][key]
                decision = {"changed": changed, "yardstick": yardstick, "decision": decide(changed, yardstick)}
                yield where | {"test": test} | decision
            if key in like["another"]:
                apart: Row = {"changed": like["another"][key], "yardstick": None, "decision": ""}
                yield where | {"test": "random_nets"} | apart


def _by_method(rows: list[Row]) -> dict[tuple[str, str], float]:
    return {(row["method"], row["metric"]): row["value"] for row in rows}
