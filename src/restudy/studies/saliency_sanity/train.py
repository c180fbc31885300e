"""Stage `train`: the nets that the two tests compare, three arms per pair and seed.

`true` is the net that is explained. `retrain` is an honest retraining from other initial weights and another order of
the same images: the yardstick of every drop in similarity. `permuted` learns the labels of some of the images in a
random permutation, from the same initial weights as `retrain`, until it knows them by heart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.training import Epoch, History, evaluate, train_classifier
from restudy.methods.training.supervised import Precision
from restudy.studies.saliency_sanity import nets

ARMS = ("true", "retrain", "permuted")

TRAINING = pa.schema(
    [("pair", pa.string()), ("seed", pa.int64()), ("arm", pa.string())]
    + [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
)
CURVES = pa.schema(
    [("pair", pa.string()), ("seed", pa.int64()), ("arm", pa.string()), ("epoch", pa.int64())]
    + [("loss_nats", pa.float64()), ("accuracy", pa.float64())]
)


@dataclass(frozen=True)
class Recipe:
    """How one arm is trained: passes over its images, batch size, and the accuracy that ends it (or None)."""

    epochs: int
    batch_size: int
    stop_at: float | None
    checkpoint_every: int


def train_models(
    context: Context,
    *,
    pair: str,
    seeds: Sequence[int],
    channels: Sequence[int],
    hidden: int,
    mlp_hidden: Sequence[int],
    init: str,
    train_images: int,
    images_seen: int,
    batch_size: int,
    learning_rate: float,
    permuted_images: int,
    permuted_epochs: int,
    permuted_batch_size: int,
    permuted_target: float,
    precision: Precision,
    channels_last: bool,
    test_images: int,
) -> Outputs:
    """Train the three arms of a pair for every seed.

    Returns `training` (accuracies in [0, 1] and epochs), `curves` (loss in nats and running accuracy by epoch) and
    the tensors `weights`, keyed `<pair>/s<seed>/<arm>/<parameter>`. The shapes of the models
    are those of the authors' released code; sizes and epochs are parameters.
    """
    sizes = nets.Sizes.of(channels, hidden, mlp_hidden, init)
    data = nets.load(pair)
    asked = nets.chosen(test_images, len(data.test_labels), 0, "accuracy")
    test = (nets.as_inputs(data.test_images[asked.numpy()]), torch.tensor(data.test_labels)[asked])
    settings: dict[str, Any] = {"learning_rate": learning_rate, "precision": precision}
    settings["channels_last"] = channels_last and pair.startswith("cnn")
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        index = nets.chosen(train_images, len(data.train_labels), seed, "train")
        images, labels = nets.as_inputs(data.train_images[index.numpy()]), torch.tensor(data.train_labels)[index]
        usual = Recipe(max(1, round(images_seen / len(images))), batch_size, None, 1)
        hard = Recipe(permuted_epochs, permuted_batch_size, permuted_target, 10)
        few = images[:permuted_images], permuted(labels[:permuted_images], seed)
        live = context.live(seed)
        for arm in ARMS:
            recipe, shown = (hard, few) if arm == "permuted" else (usual, (images, labels))
            key = f"{pair}/s{seed}/{arm}"
            model = nets.build(pair, sizes, arm_seed(seed, arm)).to(context.device)
            checkpoint = context.checkpoints / f"{key.replace('/', '-')}.pt"
            settings["on_epoch"] = partial(_watch, live, arm)
            history = _trained(model, shown, recipe, arm_seed(seed, arm), checkpoint, settings)
            where = {"pair": pair, "seed": seed, "arm": arm}
            rows += [where | found for found in _measured(model, shown, test, history)]
            curves += [where | vars(epoch) for epoch in history.epochs]
            weights |= {f"{key}/{name}": value.contiguous() for name, value in model.state_dict().items()}
        live.close()
    return {
        "training": pa.Table.from_pylist(rows, schema=TRAINING),
        "curves": pa.Table.from_pylist(curves, schema=CURVES),
        "weights": weights,
    }


def _watch(live: Any, arm: str, epoch: Epoch) -> None:
    """Send an epoch to the live curves, if anybody watches."""
    live.log(epoch.epoch, **{f"{arm}_loss_nats": epoch.loss_nats, f"{arm}_accuracy": epoch.accuracy})


def _trained(
    model: nn.Module,
    shown: tuple[Tensor, Tensor],
    recipe: Recipe,
    seed: int,
    checkpoint: Path,
    settings: Mapping[str, Any],
) -> History:
    return train_classifier(
        model,
        *shown,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        seed=seed,
        stop_at_train_accuracy=recipe.stop_at,
        checkpoint=checkpoint,
        checkpoint_every=recipe.checkpoint_every,
        **settings,
    )


def arm_seed(seed: int, arm: str) -> int:
    """The seed of an arm's initial weights and order; `retrain` and `permuted` share one, `true` has its own."""
    return derive_seed(seed, "arm", "true" if arm == "true" else "retrain")


def permuted(labels: Tensor, seed: int) -> Tensor:
    """The same labels in a random order (int64, (N,)): nothing systematic is left to learn."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "permuted labels"))
    return labels[torch.randperm(len(labels), generator=generator)]


def _measured(
    model: nn.Module, shown: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], history: History
) -> list[dict[str, Any]]:
    """Accuracies after training on the arm's own labels and on the true test labels, and the epochs it took."""
    _, on_train = evaluate(model, *shown)
    _, on_test = evaluate(model, *test)
    return [
        {"metric": "train_accuracy", "value": on_train, "unit": "1"},
        {"metric": "test_accuracy", "value": on_test, "unit": "1"},
        {"metric": "epochs", "value": float(len(history.epochs)), "unit": "epochs"},
    ]
