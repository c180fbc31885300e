"""Stage `probe`: what heatmaps are like and how they react: complexity, likeness, jumps, stability, places."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.perturbation import (
    Grid,
    aopc,
    entropy_bits,
    image_mean,
    perturbation_curves,
    pixel_steps,
    png_bytes,
    region_order,
    total_variation,
)
from restudy.methods.relevance import conservation
from restudy.methods.similarity import ranks, spearman

from .experiment import (
    CLASSES,
    FILLS,
    LRP,
    Images,
    Row,
    drawn,
    explained,
    fill_named,
    outside_aopc,
    predicted,
    restored,
)

PROBED = ("sensitivity", "deconvolution", "deconvolution_no_switches", LRP, "lrp_epsilon", "gradient_x_input", "noise")
WALKED = ("sensitivity", "deconvolution", LRP, "lrp_epsilon", "gradient_x_input")
STABLE = ("sensitivity", LRP, "lrp_epsilon", "gradient_x_input", "noise")
COMPARED = (LRP, "noise")
SHOWN_STEPS = (0, 4, 8, 16)


@dataclass(frozen=True)
class Case:
    """A net, the test images that it is asked about, and the class that it predicts for each."""

    pair: str
    seed: int
    model: nn.Module
    shown: Images
    target: Tensor
    epsilon: float
    region: int

    def maps(self, images: Tensor, target: Tensor, names: Sequence[str], draw: int = 0) -> dict[str, Tensor]:
        """Heatmaps (N, H, W) of other images than the case's own, or of these."""
        noise = derive_seed(self.seed, "noise", draw)
        return explained(self.model, images, target, names, epsilon=self.epsilon, noise_seed=noise)


def probe(
    context: Context,
    *,
    pair: str,
    seeds: Sequence[int],
    channels: Sequence[int],
    hidden: int,
    images: int,
    region: int,
    epsilon: float,
    walk_images: int,
    walk_steps: int,
    walk_length: float,
    noise_level: float,
    noise_draws: int,
    class_images: int,
    hidden_share: float,
    share: float,
    epsilons: Sequence[float],
    epsilon_images: int,
    examples: int,
) -> Outputs:
    """Measure the heatmaps of each seed's net; returns `measures`, `epsilons`, `maps` and `strips`.

    Maps are kept of a few images of seed 0 for the figures; method `input` is the image itself.

    Runs on the CPU whatever the device: the nets are small, and much of the work is numpy's.
    """
    weights = context.tensors("weights")
    rows: list[Row] = []
    stable: list[Row] = []
    kept: dict[str, list[Row]] = {"maps": [], "strips": []}
    for seed in seeds:
        model = restored(channels, hidden, weights, f"{pair}/s{seed}/true")
        shown = drawn(pair, "test", images, seed, "explain")
        target = predicted(model, shown.images, 256)
        case = Case(pair, seed, model, shown, target, epsilon, region)
        maps = case.maps(shown.images, target, PROBED)
        found = complexity_rows(maps, shown.foreground)
        found += likeness_rows(maps, target)
        found += jump_rows(case, walk_images, walk_steps, walk_length)
        found += stability_rows(case, maps, noise_level, noise_draws)
        found += outside_rows(case, maps, share)
        found += class_average_rows(case, class_images, hidden_share, share)
        place = {"pair": pair, "seed": seed}
        rows += [place | row for row in found]
        if f"{pair}/s{seed}/bias_free/conv1.weight" in weights:
            bare = restored(channels, hidden, weights, f"{pair}/s{seed}/bias_free")
            few = shown.images[:epsilon_images]
            stable += [place | row for row in epsilon_rows(bare, few, epsilons)]
        if seed == 0:
            kept["maps"] += [place | row for row in gallery(maps, shown.images, examples)]
            kept["strips"] += [place | row for row in strips(case, maps)]
    return {"measures": rows, "epsilons": stable, **kept}


def complexity_rows(maps: dict[str, Tensor], foreground: Tensor) -> list[Row]:
    """Bytes, entropy and total variation of each method's maps (means over the images; bytes and entropy: medians),
    total variation on the foreground, and the share of negative pixels."""
    rows = []
    for method, values in maps.items():
        array = values.double().cpu().numpy()
        numbers = {
            "png_bytes": (png_bytes(array), "bytes"),
            "entropy": (entropy_bits(array), "bits"),
            "entropy_absolute": (entropy_bits(abs(array)), "bits"),
            "total_variation": (total_variation(array), "1"),
            "total_variation_foreground": (total_variation(array, foreground.cpu().numpy()), "1"),
            "negative_share": ((array < 0).mean((1, 2)), "1"),
        }
        for metric, (each, unit) in numbers.items():
            value = torch.tensor(each)
            middle = value.median() if metric in ("png_bytes", "entropy", "entropy_absolute") else value.nanmean()
            rows.append({"method": method, "condition": "", "metric": metric, "value": float(middle), "unit": unit,
                         "images": len(each)})  # fmt: skip
    return rows


def epsilon_rows(model: nn.Module, images: Tensor, epsilons: Sequence[float]) -> list[Row]:
    """Conservation gap and largest relevance of single images under the epsilon rule, float64, net without biases.

    Both relative to the logit, so that images compare.
    """
    double, points = model.double(), images.double()
    target = predicted(double, points, 256)
    rows = []
    for epsilon in epsilons:
        found = conservation(double, points, target, "lrp_epsilon", {"epsilon": epsilon})
        largest = found.relevance.abs().flatten(1).amax(1) / found.logits.abs()
        for metric, values in (("gap", found.gap()), ("largest", largest)):
            values = values.nan_to_num(
                nan=torch.inf, posinf=torch.inf
            )  # a map that is not finite has failed altogether
            rows += [
                {"epsilon": epsilon, "image": image, "metric": metric, "value": value, "unit": "1"}
                for image, value in enumerate(values.tolist())
            ]
    return rows


def jump_rows(case: Case, images: int, steps: int, length: float) -> list[Row]:
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


def likeness_rows(maps: dict[str, Tensor], target: Tensor) -> list[Row]:
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


def stability_rows(case: Case, maps: dict[str, Tensor], level: float, draws: int) -> list[Row]:
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


def outside_rows(case: Case, maps: dict[str, Tensor], share: float) -> list[Row]:
    """Share of absolute relevance outside the object, and AOPC of the regions outside, ranked and at random.

    `share` of all regions, halved, is the number replaced; images with too few regions outside are left out.
    """
    images, inside = case.shown.images, case.shown.foreground
    grid = Grid.of(images, case.region)
    rows = []
    for method in COMPARED:
        size = maps[method].abs().double()
        part = (size * ~inside).sum((1, 2)) / size.sum((1, 2)).clamp(min=1e-300)
        rows.append(_row(method, "", "outside_share", float(part.mean()), len(images)))
    steps = max(1, grid.steps(share) // 2)
    values, used = outside_aopc(
        case.model, images, case.target, {m: maps[m] for m in COMPARED}, inside, grid, steps, case.seed
    )
    for method, each in values.items():
        mean = float(each.mean()) if len(each) else math.nan
        rows.append(_row(method, "", "outside_aopc", mean, int(used.sum())))
    return rows


def class_average_rows(case: Case, class_images: int, hidden_share: float, share: float) -> list[Row]:
    """AOPC of three rankings of the regions that are left: the image's own, the class average, another image's.

    For each class the regions most relevant on average (over `class_images` training images, right or wrong) are
    replaced by the image's mean. Test images that are still classified correctly are kept. Every map is computed anew
    on images occluded in this way; hidden regions stand in no order. `share` of all regions is then replaced so.
    """
    grid = Grid.of(case.shown.images, case.region)
    hidden, steps = grid.steps(hidden_share), grid.steps(share)
    totals = {"own": 0.0, "class_average": 0.0, "other_image": 0.0}
    count = 0
    pool = drawn(case.pair, "train", class_images * 3 * CLASSES, case.seed, "class average")
    for label in range(CLASSES):
        examples = pool.images[pool.labels == label][:class_images]
        mine = case.shown.images[case.shown.labels == label]
        if len(examples) < 2 or not len(mine):
            continue
        goal = torch.full((len(examples),), label)
        usual = grid.sums(case.maps(examples, goal, [LRP])[LRP]).mean(0, keepdim=True)
        covered = region_order(usual, "morf", _generator(case, label))[:, :hidden]
        examples, mine = (occluded(images, covered[0], grid) for images in (examples, mine))
        kept = mine[predicted(case.model, mine, 256) == label]
        if not len(kept):
            continue
        found = _compared(case, examples, kept, label, covered[0], grid, steps)
        count += len(kept)
        for name, values in found.items():
            totals[name] += float(values.sum())
    means = {name: total / count if count else math.nan for name, total in totals.items()}
    return [_row(LRP, name, "occluded_aopc", mean, count) for name, mean in means.items()]


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


def picture(values: Tensor) -> dict[str, Any]:
    """Height, width and values of a map (H, W), flattened by rows."""
    return {"height": values.shape[0], "width": values.shape[1], "values": values.detach().float().flatten().numpy()}


def gallery(maps: dict[str, Tensor], images: Tensor, examples: int) -> Iterator[Row]:
    """Rows of `maps`: the first images and their heatmaps."""
    for number in range(min(examples, len(images))):
        yield {"image": number, "method": "input"} | picture(images[number, 0])
        for method, values in maps.items():
            yield {"image": number, "method": method} | picture(values[number])


def strips(case: Case, maps: dict[str, Tensor]) -> Iterator[Row]:
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


def _row(method: str, condition: str, metric: str, value: float, images: int) -> dict[str, Any]:
    unit = "logits" if metric in ("outside_aopc", "occluded_aopc") else "1"
    return {"method": method, "condition": condition, "metric": metric, "value": value, "unit": unit, "images": images}
