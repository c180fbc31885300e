"""The class on average against the single image: whose map ranks the regions better when the usual part is hidden?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from restudy.methods.models import derive_seed
from restudy.methods.perturbation import Grid, aopc, image_mean, perturbation_curves, pixel_steps, region_order
from restudy.studies.relevance_evaluation import nets
from restudy.studies.relevance_evaluation.explain import LRP

if TYPE_CHECKING:
    from restudy.studies.relevance_evaluation.probe import Case


def class_average_rows(case: Case, class_images: int, hidden_share: float, share: float) -> list[dict[str, Any]]:
    """AOPC of three rankings of the regions that are left: the image's own, the class average, another image's.

    For each class the regions most relevant on average (over `class_images` training images, right or wrong) are
    replaced by the image's mean. Test images that are still classified correctly are kept. Every map is computed anew
    on images occluded in this way; hidden regions stand in no order. `share` of all regions is then replaced so.
    """
    grid = Grid.of(case.shown.images, case.region)
    hidden, steps = grid.steps(hidden_share), grid.steps(share)
    totals = {"own": 0.0, "class_average": 0.0, "other_image": 0.0}
    count = 0
    pool = nets.drawn(case.pair, "train", class_images * 3 * nets.CLASSES, case.seed, "class average")
    for label in range(nets.CLASSES):
        examples = pool.images[pool.labels == label][:class_images]
        mine = case.shown.images[case.shown.labels == label]
        if len(examples) < 2 or not len(mine):
            continue
        goal = torch.full((len(examples),), label)
        usual = grid.sums(case.maps(examples, goal, [LRP])[LRP]).mean(0, keepdim=True)
        covered = region_order(usual, "morf", _generator(case, label))[:, :hidden]
        examples, mine = (occluded(images, covered[0], grid) for images in (examples, mine))
        kept = mine[nets.predicted(case.model, mine, 256) == label]
        if not len(kept):
            continue
        found = _compared(case, examples, kept, label, covered[0], grid, steps)
        count += len(kept)
        for name, values in found.items():
            totals[name] += float(values.sum())
    return [
        {"method": LRP, "condition": name, "metric": "occluded_aopc", "value": total / count if count else float("nan"),
         "unit": "logits", "images": count}
        for name, total in totals.items()
    ]  # fmt: skip


def occluded(images: Tensor, regions: Tensor, grid: Grid) -> Tensor:
    """Images with these regions replaced by the mean of each image."""
    rest = [r for r in range(grid.count) if r not in set(regions.tolist())]
    order = torch.tensor([*regions.tolist(), *rest])[None].expand(len(images), -1).contiguous()
    covered = pixel_steps(order, grid) < len(regions)
    return torch.where(covered[:, None], images.mean((2, 3), keepdim=True), images)


def _compared(
    case: Case, examples: Tensor, kept: Tensor, label: int, hidden: Tensor, grid: Grid, steps: int
) -> dict[str, Tensor]:
    """AOPC (logits) of each kept image by the three rankings."""
    goal = torch.full((len(examples),), label)
    target = torch.full((len(kept),), label)
    of_class = grid.sums(case.maps(examples, goal, [LRP])[LRP])
    scores = {
        "own": grid.sums(case.maps(kept, target, [LRP])[LRP]),
        "class_average": of_class.mean(0, keepdim=True).expand(len(kept), -1),
        "other_image": of_class[torch.arange(len(kept)) % len(of_class)],
    }
    last = torch.finfo(torch.float64).min
    orders = {
        name: region_order(values.clone().index_fill(1, hidden, last), "morf", _generator(case, label))
        for name, values in scores.items()
    }
    curves = perturbation_curves(
        case.model, kept, target, orders, grid, image_mean(), steps=steps, generator=_generator(case, label)
    )
    return {name: aopc(found.logit) for name, found in curves.items()}


def _generator(case: Case, label: int) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(case.seed, "class average", case.pair, label))
