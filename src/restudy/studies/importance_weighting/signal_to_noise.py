"""Stage `signal`: signal-to-noise of the gradient against k, for IWAE, STL and DReG (Rainforth et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.methods.importance import DeepGaussianAutoencoder, Moments, Objective, distance, gradient_moments
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.importance_weighting.evaluate import trained
from restudy.studies.importance_weighting.images import Images
from restudy.studies.importance_weighting.tidy import SIGNAL

OBJECTIVES: tuple[Objective, ...] = ("iwae", "stl", "dreg")
Row = dict[str, Any]


def measure_signal(
    context: Context,
    *,
    seeds: Sequence[int],
    train_images: int,
    test_images: int,
    signal_arms: Sequence[str],
    signal_k: Sequence[int],
    signal_batch: int,
    signal_draws: int,
) -> Outputs:
    """Draw gradients of trained networks on one mini-batch.

    Returns `signal`: for each run, estimator, k and part (encoder, decoder: all of its parameters together) the
    signal-to-noise ratio of a gradient, and how far its mean lies from that of IWAE.
    """
    keep_freed_memory()
    weights = context.tensors("weights")
    rows: list[Row] = []
    for seed in seeds:
        images = Images.draw(fashion_mnist.load(), seed, train_images, test_images).to(context.device)
        for name in signal_arms:
            model = trained(weights, seed, name).to(context.device)
            for k in signal_k:
                where = {"seed": seed, "arm": name, "k": k, "draws": signal_draws}
                rows += signal_rows(where, model, images.fixed[:signal_batch], k, signal_draws)
    return {"signal": pa.Table.from_pylist(rows, schema=SIGNAL)}


def signal_rows(where: Row, model: DeepGaussianAutoencoder, x: Tensor, k: int, draws: int) -> Iterator[Row]:
    """Rows of one network and k: every estimator on draws of its own."""
    found: dict[str, tuple[Moments, Moments]] = {}
    for objective in OBJECTIVES:
        generator = torch.Generator().manual_seed(derive_seed(where["seed"], "signal", where["arm"], objective, k))
        found[objective] = gradient_moments(objective, model, x, k, draws, generator)
    for name, parts in found.items():
        for i, part in enumerate(("encoder", "decoder")):
            length, error = distance(parts[i], found["iwae"][i])
            metrics = {
                "signal_to_noise": parts[i].signal_to_noise,
                "squared_norm": parts[i].squared_norm,
                "total_variance": parts[i].total_variance,
            }
            if name != "iwae":
                metrics |= {"distance": length, "distance_error": error}
            for metric, value in metrics.items():
                yield {**where, "objective": name, "parameters": part} | {
                    "metric": metric, "value": value, "unit": "1"
                }  # fmt: skip
