"""Stage `perturb`: the class's score while regions are replaced, for every heatmap, order and fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.perturbation import SCORES, Curves, Grid, aopc, perturbation_curves, region_order
from restudy.studies.relevance_evaluation import nets
from restudy.studies.relevance_evaluation.explain import LRP, explained, fill_named
from restudy.studies.relevance_evaluation.tidy import AOPC, CURVES

BOTH_ORDERS = ("sensitivity", "deconvolution", LRP, "edges", "noise")
"""Heatmaps that are also perturbed with the least relevant regions first."""
UNITS = {"logit": "logits", "probability": "1", "log_odds": "nats"}


def perturb_images(
    context: Context,
    *,
    pair: str,
    seeds: Sequence[int],
    channels: Sequence[int],
    hidden: int,
    methods: Sequence[str],
    fills: Sequence[str],
    regions: Sequence[int],
    shares: Sequence[float],
    images: int,
    pool: int,
    draws: int,
    random_orders: int,
    epsilon: float,
    blur_sigma: float,
    batch_size: int,
) -> Outputs:
    """Perturb test images in the order of every heatmap; returns `aopc` and `curves` (see `tidy`).

    The class followed is the one that the net predicts on the unperturbed image. All orders of a seed see the same
    draws of a fill.
    """
    weights = context.tensors("weights")
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for seed in seeds:
        model = nets.restored(channels, hidden, weights, f"{pair}/s{seed}/true").to(context.device)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        shown = nets.drawn(pair, "test", images, seed, "explain").images.to(context.device)
        others = nets.drawn(pair, "train", pool, seed, "pool").images.to(context.device)
        target = nets.predicted(model, shown, batch_size)
        maps = explained(
            model, shown, target, methods, epsilon=epsilon, noise_seed=derive_seed(seed, "noise"), batch_size=64
        )
        for region in regions:
            grid = Grid.of(shown, region)
            orders = region_orders(maps, grid, random_orders, derive_seed(seed, "orders", pair, region))
            for fill in fills:
                found = perturbation_curves(
                    model,
                    shown,
                    target,
                    orders,
                    grid,
                    fill_named(fill, pool=others, region=region, blur_sigma=blur_sigma),
                    steps=grid.steps(max(shares)),
                    draws=draws,
                    generator=torch.Generator().manual_seed(derive_seed(seed, "fill", pair, region, fill)),
                    batch_size=batch_size,
                )
                where = {"pair": pair, "seed": seed, "region": region, "fill": fill}
                rows += aopc_rows(where, found, grid, shares)
                curves += _curve_rows(where, found)
    return {"aopc": pa.Table.from_pylist(rows, schema=AOPC), "curves": pa.Table.from_pylist(curves, schema=CURVES)}


def region_orders(maps: Mapping[str, Tensor], grid: Grid, random_orders: int, seed: int) -> dict[str, Tensor]:
    """Orders of the regions by `<method> <order>`, and `random <number>`."""
    found = {}
    for name, values in maps.items():
        for order in ("morf", "lerf") if name in BOTH_ORDERS else ("morf",):
            # Ties are broken by the same draw for all methods.
            found[f"{name} {order}"] = region_order(grid.sums(values), order, torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed + 1)
    nothing = torch.zeros(len(next(iter(maps.values()))), grid.count)
    for number in range(random_orders):
        found[f"random {number}"] = region_order(nothing, "random", generator)
    return found


def merged(found: Mapping[str, Curves], score: str) -> Iterator[tuple[str, str, Tensor]]:
    """Method, order and curve (N, steps + 1); the random orders are averaged into one."""
    chance = [curves.score(score) for name, curves in found.items() if name.startswith("random ")]
    if chance:
        yield "random", "random", torch.stack(chance).mean(0)
    for name, curves in found.items():
        method, order = name.split()
        if method != "random":
            yield method, order, curves.score(score)


def aopc_rows(
    where: Mapping[str, Any], found: Mapping[str, Curves], grid: Grid, shares: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Rows of the table `aopc`: each score over each share of the regions."""
    for score in SCORES:
        for method, order, curve in merged(found, score):
            for share in shares:
                steps = grid.steps(share)
                values = aopc(curve, steps)
                yield dict(where) | {
                    "method": method, "order": order, "score": score, "share": share, "steps": steps,
                    "images": len(values), "start": float(curve[:, 0].mean()), "value": float(values.mean()),
                    "unit": UNITS[score], "values": values.float().numpy(),
                }  # fmt: skip


def _curve_rows(where: Mapping[str, Any], found: Mapping[str, Curves]) -> Iterator[dict[str, Any]]:
    for score in SCORES:
        for method, order, curve in merged(found, score):
            change = (curve - curve[:, :1]).mean(0).numpy()
            here = {"method": method, "order": order, "score": score, "unit": UNITS[score], "values": change}
            yield dict(where) | here
