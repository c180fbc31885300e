"""Stage `train`: the CNN whose decisions are explained, and on Fashion-MNIST a second one without biases."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.training import Epoch, evaluate, train_classifier
from restudy.studies.relevance_evaluation import nets
from restudy.studies.relevance_evaluation.tidy import TRAINING

BIAS_FREE_PAIR = "fashion_mnist"


def train_models(
    context: Context,
    *,
    pair: str,
    seeds: Sequence[int],
    channels: Sequence[int],
    hidden: int,
    train_images: int,
    images_seen: int,
    batch_size: int,
    learning_rate: float,
    channels_last: bool,
    test_images: int,
) -> Outputs:
    """Train the arms of a pair for every seed.

    Returns `training` (accuracies in [0, 1]) and the tensors `weights`, keyed `<pair>/s<seed>/<arm>/<parameter>`. Arm
    `bias_free` starts from the same weights and sees the images in the same order as `true`.
    """
    rows: list[dict[str, Any]] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        shown = nets.drawn(pair, "train", train_images, seed, "train")
        test = nets.drawn(pair, "test", test_images, seed, "accuracy")
        live = context.live(seed)
        for arm in ("true", "bias_free") if pair == BIAS_FREE_PAIR else ("true",):
            model = nets.build(channels, hidden, derive_seed(seed, "build", pair))
            if arm == "bias_free":
                nets.without_biases(model)
            model.to(torch.device(context.device))
            train_classifier(
                model,
                shown.images,
                shown.labels,
                epochs=max(1, round(images_seen / len(shown.labels))),
                batch_size=batch_size,
                learning_rate=learning_rate,
                seed=derive_seed(seed, "train", pair),
                checkpoint=context.checkpoints / f"{pair}-s{seed}-{arm}.pt",
                channels_last=channels_last,
                on_epoch=partial(_watch, live, arm),
            )
            where = {"pair": pair, "seed": seed, "arm": arm, "unit": "1"}
            for metric, images in (("train_accuracy", shown), ("test_accuracy", test)):
                _, accuracy = evaluate(model, images.images, images.labels)
                rows.append(where | {"metric": metric, "value": accuracy})
            weights |= {
                f"{pair}/s{seed}/{arm}/{name}": value.contiguous() for name, value in model.state_dict().items()
            }
        live.close()
    return {"training": pa.Table.from_pylist(rows, schema=TRAINING), "weights": weights}


def _watch(live: Any, arm: str, epoch: Epoch) -> None:
    """Send an epoch to the live curves, if anybody watches."""
    live.log(epoch.epoch, **{f"{arm}_loss_nats": epoch.loss_nats})
