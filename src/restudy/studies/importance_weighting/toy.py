"""Stage `toy`: gradients on a linear Gaussian model where everything is known (Rainforth et al. 2018, section 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import torch

from restudy.bench.context import Context, Outputs
from restudy.methods.importance import LinearGaussian, Moments, Objective, distance, moments
from restudy.methods.models import derive_seed
from restudy.studies.importance_weighting.tidy import TOY_GRADIENTS

OBJECTIVES: tuple[Objective, ...] = ("iwae", "stl", "dreg")
Row = dict[str, Any]


def measure_toy(
    context: Context,
    *,
    seeds: Sequence[int],
    dimensions: int,
    perturbation: float,
    toy_k: Sequence[int],
    toy_draws: int,
) -> Outputs:
    """Signal-to-noise of the encoder's gradient, all of A and b together, near the best encoder.

    Returns `toy_gradients` (seed, objective, k, metric, value, unit); a seed is a model and an x.
    """
    rows: list[Row] = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(derive_seed(seed, "toy"))
        model = LinearGaussian.perturbed(dimensions, perturbation, generator)
        x = model.draw_x(generator)
        for k in toy_k:
            found: dict[str, Moments] = {}
            for objective in OBJECTIVES:
                at_once = max(1, min(toy_draws, 20_000 // k))
                batches = [min(at_once, toy_draws - i) for i in range(0, toy_draws, at_once)]
                found[objective] = moments(
                    model.encoder_gradients(objective, x, k, size, generator) for size in batches
                )
            rows += toy_rows(seed, k, found)
    return {"toy_gradients": pa.Table.from_pylist(rows, schema=TOY_GRADIENTS)}


def toy_rows(seed: int, k: int, found: dict[str, Moments]) -> Iterator[Row]:
    """Rows of one k: signal-to-noise, norm of the expected gradient, and its distance from IWAE's in noise units."""
    for objective, here in found.items():
        metrics = {"signal_to_noise": here.signal_to_noise, "squared_norm": here.squared_norm}
        if objective != "iwae":
            length, error = distance(here, found["iwae"])
            metrics |= {"distance": length, "distance_error": error}
        for metric, value in metrics.items():
            yield {"seed": seed, "objective": objective, "k": k, "metric": metric, "value": value, "unit": "1"}
