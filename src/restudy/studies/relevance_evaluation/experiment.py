"""Three data sets, the nets that are explained, and the class's score while regions of the images are replaced.

Stage `train`: the CNN whose decisions are explained, and on Fashion-MNIST a second one without biases. Stage `perturb`:
every heatmap, order and fill. `aopc` holds the area over the first `steps` regions, mean over the images of a seed
(`value`) and image by image (`values`); `start` is the mean score of the unperturbed images, method `random` the mean
over the random orders. `curves` holds the mean over the images of f(x^k) - f(x^0) for k = 0, 1, ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist, mnist5k, photos
from restudy.data.dataset import ImageSet
from restudy.methods.models import SmallCNN, derive_seed
from restudy.methods.perturbation import (
    SCORES,
    Curves,
    Fill,
    Grid,
    aopc,
    blur,
    constant,
    from_images,
    image_mean,
    perturbation_curves,
    region_order,
    uniform,
)
from restudy.methods.relevance import HEATMAPS, Heatmap, heatmap, heatmaps
from restudy.methods.training import Epoch, evaluate, train_classifier

Row = dict[str, Any]
CLASSES = 10
SIDE = 28
LOADERS: dict[str, Callable[[], ImageSet]] = {
    "fashion_mnist": fashion_mnist.load,
    "mnist5k": mnist5k.load,
    "garments": fashion_mnist.load,
}
"""`garments`: Fashion-MNIST whose black background is replaced by a piece of a photograph."""
BANK = {"train": 1200, "test": 400}
PIECES = (56, 112)
"""Sides of the pieces cut from photographs, in pixels, before they are resized to 28."""
LRP = "lrp_alpha_beta"
FILLS = ("uniform", "mean", "blur", "dataset", "black")
BIAS_FREE_PAIR = "fashion_mnist"
BOTH_ORDERS = ("sensitivity", "deconvolution", LRP, "edges", "noise")
"""Heatmaps that are also perturbed with the least relevant regions first."""
UNITS = {"logit": "logits", "probability": "1", "log_odds": "nats"}
CHANCE = 3
ENOUGH = 2
"""Images count that have at least this many times as many regions outside as are replaced."""


@dataclass(frozen=True)
class Images:
    """Images (N, 1, 28, 28) in [0, 1], labels (N,), and where the object is, bool (N, 28, 28)."""

    images: Tensor
    labels: Tensor
    foreground: Tensor


def drawn(pair: str, part: str, count: int, seed: int, purpose: str) -> Images:
    """At most `count` images of a part (`train` or `test`) of a data set, drawn for a seed and a purpose.

    Backgrounds of `garments` are drawn with them; those of the training and of the test images come from different
    halves of the photographs.
    """
    data = LOADERS[pair]()
    pixels, labels = (getattr(data, f"{part}_{what}") for what in ("images", "labels"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "images", pair, part, purpose))
    chosen = torch.randperm(len(labels), generator=generator)[:count]
    images = torch.tensor(pixels[chosen.numpy()], dtype=torch.float32).div_(255)
    foreground = images > 0
    if pair == "garments":
        bank = backgrounds(part)
        behind = bank[torch.randint(len(bank), (len(images),), generator=generator)]
        images = torch.where(foreground, images, behind)
    return Images(images[:, None], torch.tensor(labels)[chosen], foreground)


@cache
def backgrounds(part: str) -> Tensor:
    """Pieces of photographs in grey, (M, 28, 28) in [0, 1]: left halves for training, right halves for tests."""
    generator = np.random.default_rng([7, BANK[part]])
    halves = []
    for photo in photos.load().values():
        grey = photo.mean(axis=2) if photo.ndim == 3 else photo
        middle = grey.shape[1] // 2
        halves.append(
            torch.tensor(grey[:, :middle] if part == "train" else grey[:, middle:], dtype=torch.float32) / 255
        )
    pieces = []
    for _ in range(BANK[part]):
        half = halves[generator.integers(len(halves))]
        side = int(generator.integers(*PIECES))
        top, left = (int(generator.integers(size - side + 1)) for size in half.shape)
        piece = half[top : top + side, left : left + side]
        pieces.append(F.adaptive_avg_pool2d(piece[None], SIDE)[0])
    return torch.stack(pieces)


def build(channels: Sequence[int], hidden: int, seed: int) -> SmallCNN:
    """The untrained CNN, in torch's default initial weights."""
    first, second = channels
    return SmallCNN((first, second), hidden, CLASSES, seed=seed)


def without_biases(model: nn.Module) -> nn.Module:
    """The model with all biases 0, and kept there by training."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
            parameter.requires_grad_(False)
    return model


def restored(channels: Sequence[int], hidden: int, weights: dict[str, Tensor], prefix: str) -> nn.Module:
    """The trained model whose tensors are stored as `<prefix>/<parameter>`, in evaluation mode."""
    names = {key.removeprefix(f"{prefix}/"): value for key, value in weights.items() if key.startswith(f"{prefix}/")}
    model = build(channels, hidden, 0)
    model.load_state_dict(names)
    return model.eval()


def predicted(model: nn.Module, images: Tensor, batch_size: int) -> Tensor:
    """The class with the highest logit, int64 (N,)."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in images.split(batch_size)])  # type: ignore[no-untyped-call]


def specification(name: str, epsilon: float, noise_seed: int) -> Heatmap:
    """How a heatmap is made: `epsilon` stabilises the epsilon rule, `noise_seed` draws the control map."""
    special = {
        "lrp_epsilon": Heatmap("lrp_epsilon", "sum", {"epsilon": epsilon}),
        "noise": Heatmap("noise", "sum", {"seed": noise_seed}),
    }
    return special.get(name) or HEATMAPS.get(name) or heatmap(name)


def explained(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    names: Sequence[str],
    *,
    epsilon: float,
    noise_seed: int = 0,
    batch_size: int = 64,
) -> dict[str, Tensor]:
    """Heatmaps (N, H, W) by name."""
    wanted: Mapping[str, Heatmap] = {name: specification(name, epsilon, noise_seed) for name in names}
    return heatmaps(model, images, target, wanted, batch_size=batch_size)


def fill_named(name: str, *, pool: Tensor, region: int, blur_sigma: float, low: float = 0.0, high: float = 1.0) -> Fill:
    """A fill by the name that results carry; `pool` holds the images that `dataset` takes blocks from."""
    found: dict[str, Callable[[], Fill]] = {
        "uniform": lambda: uniform(low, high),
        "mean": image_mean,
        "blur": lambda: blur(blur_sigma),
        "dataset": lambda: from_images(pool, region),
        "black": lambda: constant(low),
    }
    return found[name]()


def train(
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
    rows: list[Row] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        shown = drawn(pair, "train", train_images, seed, "train")
        test = drawn(pair, "test", test_images, seed, "accuracy")
        live = context.live(seed)
        for arm in ("true", "bias_free") if pair == BIAS_FREE_PAIR else ("true",):
            model = build(channels, hidden, derive_seed(seed, "build", pair))
            if arm == "bias_free":
                without_biases(model)
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
    return {"training": rows, "weights": weights}


def _watch(live: Any, arm: str, epoch: Epoch) -> None:
    """Send an epoch to the live curves, if anybody watches."""
    live.log(epoch.epoch, **{f"{arm}_loss_nats": epoch.loss_nats})


def perturb(
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
    """Perturb test images in the order of every heatmap; returns `aopc` and `curves`.

    The class followed is the one that the net predicts on the unperturbed image. All orders of a seed see the same
    draws of a fill.
    """
    weights = context.tensors("weights")
    rows: list[Row] = []
    curves: list[Row] = []
    for seed in seeds:
        model = restored(channels, hidden, weights, f"{pair}/s{seed}/true").to(context.device)
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        shown = drawn(pair, "test", images, seed, "explain").images.to(context.device)
        others = drawn(pair, "train", pool, seed, "pool").images.to(context.device)
        target = predicted(model, shown, batch_size)
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
    return {"aopc": rows, "curves": curves}


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
) -> Iterator[Row]:
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


def _curve_rows(where: Mapping[str, Any], found: Mapping[str, Curves]) -> Iterator[Row]:
    for score in SCORES:
        for method, order, curve in merged(found, score):
            change = (curve - curve[:, :1]).mean(0).numpy()
            here = {"method": method, "order": order, "score": score, "unit": UNITS[score], "values": change}
            yield dict(where) | here


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
