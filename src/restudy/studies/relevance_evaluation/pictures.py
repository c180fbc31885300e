"""Maps and perturbed images that are kept for the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from restudy.methods.models import derive_seed
from restudy.methods.perturbation import Grid, pixel_steps, region_order
from restudy.studies.relevance_evaluation.explain import FILLS, LRP, fill_named

if TYPE_CHECKING:
    from restudy.studies.relevance_evaluation.probe import Case

SHOWN_STEPS = (0, 4, 8, 16)


def picture(values: Tensor) -> dict[str, Any]:
    """Height, width and values of a map (H, W), flattened by rows."""
    return {"height": values.shape[0], "width": values.shape[1], "values": values.detach().float().flatten().numpy()}


def gallery(maps: dict[str, Tensor], images: Tensor, examples: int) -> Iterator[dict[str, Any]]:
    """Rows of `maps`: the first images and their heatmaps."""
    for number in range(min(examples, len(images))):
        yield {"image": number, "method": "input"} | picture(images[number, 0])
        for method, values in maps.items():
            yield {"image": number, "method": method} | picture(values[number])


def strips(case: Case, maps: dict[str, Tensor]) -> Iterator[dict[str, Any]]:
    """Rows of `strips`: the first image after some steps, in the orders of sensitivity and LRP, with every fill."""
    image = case.shown.images[:1]
    grid = Grid.of(image, case.region)
    pool = case.shown.images[1:]
    for fill in FILLS:
        how = fill_named(fill, pool=pool, region=case.region, blur_sigma=2.0)
        for method in ("sensitivity", LRP):
            generator = torch.Generator().manual_seed(derive_seed(case.seed, "strip", fill))
            order = region_order(grid.sums(maps[method][:1]), "morf", generator)
            drawn = how.draw(image, generator) if how.draw is not None else image
            for step in SHOWN_STEPS:
                seen = torch.where((pixel_steps(order, grid) < step)[:, None], drawn, image)
                yield {"fill": fill, "method": method, "order": "morf", "step": step} | picture(seen[0, 0])
