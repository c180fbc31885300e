"""A heatmap is no mask: how much relevance lies outside the object, and does it matter there?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from restudy.methods.models import derive_seed
from restudy.methods.perturbation import Grid, aopc, image_mean, perturbation_curves, region_order
from restudy.studies.relevance_evaluation.explain import LRP

if TYPE_CHECKING:
    from restudy.studies.relevance_evaluation.probe import Case

COMPARED = (LRP, "noise")
CHANCE = 3
ENOUGH = 2
"""Images count that have at least this many times as many regions outside as are replaced."""


def outside_rows(case: Case, maps: dict[str, Tensor], share: float) -> list[dict[str, Any]]:
    """Share of absolute relevance outside the object, and AOPC of the regions outside, ranked and at random.

    `share` of all regions, halved, is the number replaced; images with too few regions outside are left out.
    """
    images, inside = case.shown.images, case.shown.foreground
    grid = Grid.of(images, case.region)
    rows = []
    for method in COMPARED:
        size = maps[method].abs().double()
        part = (size * ~inside).sum((1, 2)) / size.sum((1, 2)).clamp(min=1e-300)
        rows.append(_row(method, "outside_share", float(part.mean()), len(images)))
    steps = max(1, grid.steps(share) // 2)
    values, used = outside_aopc(
        case.model, images, case.target, {m: maps[m] for m in COMPARED}, inside, grid, steps, case.seed
    )
    for method, each in values.items():
        mean = float(each.mean()) if len(each) else math.nan
        rows.append(_row(method, "outside_aopc", mean, int(used.sum())))
    return rows


def outside_aopc(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    maps: dict[str, Tensor],
    inside: Tensor,
    grid: Grid,
    steps: int,
    seed: int,
) -> tuple[dict[str, Tensor], Tensor]:
    """AOPC (logits) of regions that hold no pixel of the object, by the ranking of each map and at random.

    Returns method (and `random`) to a value for each image used, (M,), and which images were used, bool (N,): those
    with enough regions outside. Regions are replaced by the image's mean.
    """
    touched = grid.sums(inside.to(images.device).double()) > 0
    used = (~touched).sum(1) >= ENOUGH * steps
    if not bool(used.any()):
        nothing = torch.zeros(0, dtype=torch.float64)
        return dict.fromkeys((*maps, "random"), nothing), used.cpu()
    chosen, goal = images[used], target[used]
    orders = {}
    for method, values in maps.items():
        scores = grid.sums(values[used]).masked_fill(touched[used], torch.finfo(torch.float64).min)
        orders[method] = region_order(scores, "morf", torch.Generator().manual_seed(derive_seed(seed, "outside")))
    generator = torch.Generator().manual_seed(derive_seed(seed, "outside at random"))
    for number in range(CHANCE):
        scores = torch.rand(touched[used].shape, generator=generator, dtype=torch.float64)
        scores = scores.to(images.device).masked_fill(touched[used], -1.0)
        orders[f"random {number}"] = region_order(scores, "morf", generator)
    curves = perturbation_curves(model, chosen, goal, orders, grid, image_mean(), steps=steps, generator=generator)
    found = {method: aopc(curves[method].logit) for method in maps}
    found["random"] = torch.stack([aopc(curves[f"random {n}"].logit) for n in range(CHANCE)]).mean(0)
    return found, used.cpu()


def _row(method: str, metric: str, value: float, images: int) -> dict[str, Any]:
    unit = "logits" if metric == "outside_aopc" else "1"
    return {"method": method, "condition": "", "metric": metric, "value": value, "unit": unit, "images": images}
