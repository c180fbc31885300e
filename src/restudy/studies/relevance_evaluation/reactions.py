"""How heatmaps react: along a walk from the image, to noise in irrelevant places, to another image of the class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from restudy.methods.models import derive_seed
from restudy.methods.perturbation import Grid, pixel_steps
from restudy.methods.similarity import ranks, spearman
from restudy.studies.relevance_evaluation.explain import LRP

if TYPE_CHECKING:
    from restudy.studies.relevance_evaluation.probe import Case

WALKED = ("sensitivity", "deconvolution", LRP, "lrp_epsilon", "gradient_x_input")
STABLE = ("sensitivity", LRP, "lrp_epsilon", "gradient_x_input", "noise")


def jump_rows(case: Case, images: int, steps: int, length: float) -> list[dict[str, Any]]:
    """Largest change of a unit-norm map between neighbouring points of a straight walk, mean over the images.

    The walk goes in a random direction for `length` times the norm of the image, in `steps` equal steps.
    """
    start, target = case.shown.images[:images], case.target[:images]
    generator = torch.Generator().manual_seed(derive_seed(case.seed, "walk", case.pair))
    direction = torch.randn(start.shape, generator=generator)
    size = start.flatten(1).norm(dim=1) / direction.flatten(1).norm(dim=1)
    direction = direction * (length * size).view(-1, 1, 1, 1)
    at = torch.linspace(0, 1, steps + 1).view(1, -1, 1, 1, 1)
    points = (start[:, None] + at * direction[:, None]).flatten(0, 1)
    maps = case.maps(points, target.repeat_interleave(steps + 1), WALKED)
    rows = []
    for method, values in maps.items():
        flat = values.double().view(len(start), steps + 1, -1)
        unit = flat / flat.norm(dim=2, keepdim=True).clamp(min=1e-300)
        jumps = (unit[:, 1:] - unit[:, :-1]).norm(dim=2).amax(1)
        rows.append(_row(method, "", "jump", float(jumps.mean()), len(start)))
    return rows


def likeness_rows(maps: dict[str, Tensor], target: Tensor) -> list[dict[str, Any]]:
    """Mean rank correlation of the maps of different images, of one predicted class and of different classes."""
    classes = target.cpu().numpy()
    first, second = np.triu_indices(len(classes), 1)
    same = classes[first] == classes[second]
    rows = []
    for method, values in maps.items():
        for condition, found in (("signed", values), ("absolute", values.abs())):
            rank = ranks(found.double().flatten(1))
            rank = rank - rank.mean(1, keepdims=True)
            norm = np.sqrt(np.square(rank).sum(1, keepdims=True))
            unit = np.divide(rank, norm, out=np.zeros_like(rank), where=norm > 0)
            likeness = (unit @ unit.T)[first, second]
            rows.append(_row(method, condition, "likeness_same_class", float(likeness[same].mean()), int(same.sum())))
            rows.append(
                _row(method, condition, "likeness_other_class", float(likeness[~same].mean()), int((~same).sum()))
            )
    return rows


def stability_rows(case: Case, maps: dict[str, Tensor], level: float, draws: int) -> list[dict[str, Any]]:
    """Rank correlation of the scores of the upper half of the regions before and after noise in the lower half.

    The halves are those of the sum of the ranks under sensitivity and LRP, so both methods are disturbed in the same
    places and scored in the same. Noise: normal, standard deviation `level` of the input range, cut at its ends.
    """
    images = case.shown.images
    grid = Grid.of(images, case.region)
    scores = {method: grid.sums(maps[method]) for method in STABLE}
    both = torch.tensor(ranks(scores["sensitivity"]) + ranks(scores[LRP]))
    half = grid.count // 2
    order = both.argsort(dim=1, stable=True)
    lower = pixel_steps(order, grid) < half
    upper = torch.ones_like(both, dtype=torch.bool).scatter(1, order[:, :half], value=False)
    generator = torch.Generator().manual_seed(derive_seed(case.seed, "stability", case.pair))
    found: dict[str, list[float]] = {method: [] for method in STABLE}
    for draw in range(draws):
        noise = level * torch.randn(images.shape, generator=generator)
        disturbed = torch.where(lower[:, None], (images + noise).clamp(0, 1), images)
        again = case.maps(disturbed, case.target, STABLE, draw=draw + 1)
        for method in STABLE:
            after = grid.sums(again[method])
            found[method].append(float(np.nanmean(spearman(scores[method], after, upper))))
    return [_row(method, "", "rank_stability", float(np.mean(each)), len(images)) for method, each in found.items()]


def _row(method: str, condition: str, metric: str, value: float, images: int) -> dict[str, Any]:
    return {"method": method, "condition": condition, "metric": metric, "value": value, "unit": "1", "images": images}
