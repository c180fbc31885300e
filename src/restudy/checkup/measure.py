"""The measurements behind a check: maps under randomised weights, areas over perturbation curves, complexity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from restudy.methods.models import derive_seed, layers_top_down
from restudy.methods.perturbation import (
    Fill,
    Grid,
    aopc,
    blur,
    constant,
    entropy_bits,
    image_mean,
    perturbation_curves,
    png_bytes,
    region_order,
    total_variation,
    uniform,
)  # fmt: skip
from restudy.methods.randomization import cascade
from restudy.methods.randomization.reinitialize import Order
from restudy.methods.relevance import Heatmap, heatmap, heatmaps
from restudy.methods.similarity import spearman

CONTROLS = ("edges", "noise")
"""Maps that know no model: the first can never change, the second never stays."""
CASCADES: tuple[str, ...] = get_args(Order)
OPTIONS: dict[str, dict[str, Any]] = {
    "integrated_gradients": {"steps": 16},
    "smoothgrad": {"samples": 16},
    "vargrad": {"samples": 16},
    "smoothgrad_ig": {"samples": 4, "steps": 8},
}
"""Options other than the methods' own, which take longer than a check needs."""


def specification(name: str, seed: int) -> Heatmap:
    """Return how a heatmap is made for a check; `seed` draws the noise control."""
    found = heatmap(name)
    options = {"seed": seed} if name == "noise" else OPTIONS.get(name, found.options)
    return Heatmap(found.method, found.pool, options)


def maps_of(
    model: nn.Module, inputs: Tensor, target: Tensor, methods: Sequence[str], *, seed: int, batch_size: int
) -> dict[str, Tensor]:
    """Return heatmaps (N, H, W) by name, those of the controls among them."""
    wanted = {name: specification(name, seed) for name in (*methods, *CONTROLS)}
    return heatmaps(model, inputs, target, wanted, batch_size=batch_size)


def randomization_rows(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    own: Mapping[str, Tensor],
    *,
    states: int,
    seed: int,
    batch_size: int,
) -> Iterator[dict[str, Any]]:
    """Yield the rank correlation of each image's map with that of the trained model, state by state, both orders.

    Layers are drawn anew one after the other, from the logits down and from the input up, and stay random. At most
    `states` states of each order are looked at, the first and the last among them. Metrics: `spearman` of the maps as
    they are, `spearman_abs` of their absolute values; NaN where a map is constant.
    """
    layers = layers_top_down(model, inputs[:1])
    methods = [name for name in own if name not in CONTROLS]
    last: dict[str, Tensor] | None = None
    for order in CASCADES:
        wanted = depths(len(layers), states)
        for depth, (layer, current) in enumerate(cascade(model, seed=seed, order=order, layers=layers), start=1):  # type: ignore[arg-type]
            if depth not in wanted:
                continue
            if depth == len(layers) and last is not None:  # all layers random: the same weights in either order
                found = last
            else:
                draw = derive_seed(seed, "noise control", order, depth)
                found = maps_of(current, inputs, target, methods, seed=draw, batch_size=batch_size)
            last = found if depth == len(layers) else last
            where = {"order": order, "depth": depth, "layers": len(layers), "layer": layer}
            yield from _compared(where, own, found)


def _compared(
    where: dict[str, Any], own: Mapping[str, Tensor], found: Mapping[str, Tensor]
) -> Iterator[dict[str, Any]]:
    for method, values in found.items():
        first, second = own[method].double().flatten(1).cpu().numpy(), values.double().flatten(1).cpu().numpy()
        for metric, each in (
            ("spearman", spearman(first, second)),
            ("spearman_abs", spearman(abs(first), abs(second))),
        ):
            for image, value in enumerate(each.tolist()):
                yield where | {"method": method, "metric": metric, "image": image, "value": value, "unit": "1"}


def depths(layers: int, states: int) -> set[int]:
    """Return at most `states` depths from 1 to the number of layers, evenly spaced, both ends among them."""
    return {round(1 + at) for at in np.linspace(0, layers - 1, min(states, layers))}


def fills(names: Sequence[str], low: float, high: float, side: int) -> dict[str, Fill]:
    """Return fills by name for inputs between `low` and `high`; the blur's deviation is a sixteenth of the side."""
    known = {
        "uniform": uniform(low, high),
        "mean": image_mean(),
        "blur": blur(max(0.5, side / 16)),
        "black": constant(low),
    }
    return {name: known[name] for name in names}


def perturbation_rows(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    maps: Mapping[str, Tensor],
    chosen: Mapping[str, Fill],
    *,
    region: int,
    share: float,
    draws: int,
    random_orders: int,
    seed: int,
    batch_size: int,
) -> Iterator[dict[str, Any]]:
    """Yield AOPC (logits) of each image by heatmap and fill, most relevant first; `random`: mean of its orders."""
    grid = Grid.of(inputs, region)
    steps = grid.steps(share)
    orders = {
        name: region_order(grid.sums(values), "morf", torch.Generator().manual_seed(derive_seed(seed, "ties")))
        for name, values in maps.items()
    }
    generator = torch.Generator().manual_seed(derive_seed(seed, "random orders"))
    for number in range(random_orders):
        orders[f"random {number}"] = region_order(torch.zeros(len(inputs), grid.count), "random", generator)
    for fill, how in chosen.items():
        noise = torch.Generator().manual_seed(derive_seed(seed, "fill", fill))
        curves = perturbation_curves(model, inputs, target, orders, grid, how, steps=steps, draws=draws,
                                     generator=noise, batch_size=batch_size)  # fmt: skip
        areas = {name: aopc(found.logit) for name, found in curves.items()}
        chance = torch.stack([areas.pop(f"random {number}") for number in range(random_orders)]).mean(0)
        for method, values in {**areas, "random": chance}.items():
            where = {"fill": fill, "method": method, "region": region, "steps": steps, "unit": "logits"}
            yield from (where | {"image": image, "value": value} for image, value in enumerate(values.tolist()))


def complexity_rows(maps: Mapping[str, Tensor]) -> Iterator[dict[str, Any]]:
    """Yield bytes of the picture, entropy and total variation of every map."""
    for method, values in maps.items():
        array = values.double().cpu().numpy()
        numbers = {
            "png_bytes": (png_bytes(array), "bytes"),
            "entropy": (entropy_bits(array), "bits"),
            "total_variation": (total_variation(array), "1"),
        }
        for metric, (each, unit) in numbers.items():
            for image, value in enumerate(each.tolist()):
                yield {"method": method, "metric": metric, "image": image, "value": value, "unit": unit}
