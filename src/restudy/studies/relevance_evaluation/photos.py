"""Stage `photos`: EfficientNet-Lite0 with its ImageNet weights, asked about scenes and photographs.

A scene is an animal, cut out, on a photograph; plain pieces of the photographs stand beside them. One fixed model, so
scenes are the replicates and what comes out is said of this model only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.data import imagenet_lite0, stamps
from restudy.data import photos as photo_data
from restudy.methods.models import derive_seed
from restudy.methods.models.efficientnet import MEAN, STD, load_lite0, scale_pixels
from restudy.methods.perturbation import (
    SCORES,
    Grid,
    aopc,
    entropy_bits,
    perturbation_curves,
    png_bytes,
    total_variation,
)

from .experiment import LRP, UNITS, Row, explained, fill_named, merged, outside_aopc, predicted, region_orders
from .probe import picture

SEED = 0  # one fixed model: of random parts there are only the scenes, the fills and the orders
LOW, HIGH = -MEAN / STD, (1 - MEAN) / STD
CORNERS = ((0.5, 0.5), (0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
"""Where a piece of a photograph sits: the centre first."""
PIECE = 0.8
"""Side of a piece over the photograph's shorter side."""


@dataclass(frozen=True)
class Scenes:
    """Images (N, 3, H, W) scaled for the network; where the animal is, bool (N, H, W), nowhere in a plain piece; names.

    `kind` is `scene` or `crop`, `photo` the photograph behind, `scene` a name of its own for each image.
    """

    images: Tensor
    inside: Tensor
    kind: list[str]
    photo: list[str]
    scene: list[str]


def scenes(
    photos: Mapping[str, npt.NDArray[np.uint8]],
    stamps: Mapping[str, npt.NDArray[np.uint8]],
    *,
    pixels: int,
    crops: int,
    object_share: tuple[float, float],
    seed: int,
) -> Scenes:
    """One scene for each cut-out, then `crops` plain pieces of each photograph.

    A cut-out is resized so that its longer side is a share of the image's side, drawn between the two ends of
    `object_share`, and placed anywhere inside. Photographs take turns; where a piece is cut from one is drawn.
    """
    generator = np.random.default_rng(seed)
    whole = {name: _colour(photo) for name, photo in photos.items()}
    names = list(whole)
    images, inside, kind, photo, scene = [], [], [], [], []
    for number, (name, stamp) in enumerate(stamps.items()):
        behind = names[number % len(names)]
        image = _piece(whole[behind], (generator.random(), generator.random()), pixels)
        share = generator.uniform(*object_share)
        pasted, mask = _pasted(image, stamp, share, (generator.random(), generator.random()))
        images.append(pasted)
        inside.append(mask)
        kind.append("scene")
        photo.append(behind)
        scene.append(name)
    for behind in names:
        for crop, place in enumerate(CORNERS[:crops]):
            images.append(_piece(whole[behind], place, pixels))
            inside.append(torch.zeros(pixels, pixels, dtype=torch.bool))
            kind.append("crop")
            photo.append(behind)
            scene.append(f"{behind} {crop}")
    return Scenes(scale_pixels(torch.stack(images)), torch.stack(inside), kind, photo, scene)


def _colour(photo: npt.NDArray[np.uint8]) -> Tensor:
    array = photo[..., None].repeat(3, axis=2) if photo.ndim == 2 else photo
    return torch.tensor(array, dtype=torch.float32).permute(2, 0, 1) / 255


def _piece(image: Tensor, place: tuple[float, float], pixels: int) -> Tensor:
    side = round(min(image.shape[1:]) * PIECE)
    top, left = (round((size - side) * at) for size, at in zip(image.shape[1:], place, strict=True))
    return _resized(image[:, top : top + side, left : left + side], (pixels, pixels))


def _resized(image: Tensor, size: tuple[int, int]) -> Tensor:
    return F.interpolate(image[None], size, mode="bilinear", antialias=True)[0]


def _pasted(
    image: Tensor, stamp: npt.NDArray[np.uint8], share: float, place: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """The image with the cut-out on it, and where more than half of a pixel is the cut-out's."""
    pixels = image.shape[1]
    longest = max(stamp.shape[:2])
    size = tuple(max(1, round(side * share * pixels / longest)) for side in stamp.shape[:2])
    # Colour is resized with its opacity, so that what is transparent leaves no seam.
    layers = torch.tensor(stamp, dtype=torch.float32).permute(2, 0, 1) / 255
    opacity = _resized(layers[3:], (size[0], size[1])).clamp(0, 1)
    colour = _resized(layers[:3] * layers[3:], (size[0], size[1])).clamp(0, 1)
    top, left = (round((pixels - side) * at) for side, at in zip(size, place, strict=True))
    found, mask = image.clone(), torch.zeros(pixels, pixels, dtype=torch.bool)
    where = (slice(top, top + size[0]), slice(left, left + size[1]))
    found[:, *where] = colour + (1 - opacity) * found[:, *where]
    mask[where] = opacity[0] > 0.5
    return found, mask


def photos(
    context: Context,
    *,
    pixels: int,
    region: int,
    crops: int,
    stamps_used: int,
    object_share: Sequence[float],
    methods: Sequence[str],
    fills: Sequence[str],
    shares: Sequence[float],
    draws: int,
    random_orders: int,
    epsilon: float,
    blur_sigma: float,
    examples: int,
    batch_size: int,
) -> Outputs:
    """Perturb scenes and plain crops; returns `photo_aopc`, `photo_measures` and `photo_maps`."""
    model = load_lite0(imagenet_lite0.load().weights).to(context.device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    found = scenes(
        photo_data.load(),
        dict(list(stamps.load().items())[:stamps_used]),
        pixels=pixels,
        crops=crops,
        object_share=(object_share[0], object_share[1]),
        seed=SEED,
    )
    images = found.images.to(context.device)
    target = predicted(model, images, batch_size)
    maps = explained(model, images, target, methods, epsilon=epsilon, noise_seed=derive_seed(SEED, "noise"),
                     batch_size=batch_size)  # fmt: skip
    grid = Grid.of(images, region)
    orders = region_orders(maps, grid, random_orders, derive_seed(SEED, "photo orders"))
    rows: list[Row] = []
    for fill in fills:
        how = fill_named(fill, pool=images, region=region, blur_sigma=blur_sigma, low=LOW, high=HIGH)
        generator = torch.Generator().manual_seed(derive_seed(SEED, "photo fill", fill))
        curves = perturbation_curves(model, images, target, orders, grid, how, steps=grid.steps(max(shares)),
                                     draws=draws, generator=generator, batch_size=batch_size)  # fmt: skip
        for score in SCORES:
            for method, order, curve in merged(curves, score):
                for share in shares:
                    where = {"region": region, "fill": fill, "method": method, "order": order, "score": score}
                    where |= {"share": share, "steps": grid.steps(share), "unit": UNITS[score]}
                    values = aopc(curve, grid.steps(share)).tolist()
                    rows += _each(found, where, curve[:, 0].tolist(), values)
    shown = [{"scene": found.scene[n], "method": m} | picture(v[n]) for m, v in maps.items() for n in range(examples)]
    shown += [{"scene": found.scene[n], "method": "input"} | picture(images[n].mean(0)) for n in range(examples)]
    measures = _measures(found, model, images, target, maps, grid, grid.steps(min(shares)))
    return {"photo_aopc": rows, "photo_measures": measures, "photo_maps": shown}


def _each(found: Scenes, where: Mapping[str, Any], starts: Sequence[float], values: Sequence[float]) -> list[Any]:
    return [
        {"kind": kind, "photo": photo, "scene": scene, "start": start, "value": value} | dict(where)
        for kind, photo, scene, start, value in zip(found.kind, found.photo, found.scene, starts, values, strict=True)
    ]


def _measures(
    found: Scenes, model: nn.Module, images: Tensor, target: Tensor, maps: dict[str, Tensor], grid: Grid, steps: int
) -> list[Row]:
    """Complexity of every map; relevance outside the animal and its AOPC, for the scenes."""
    rows: list[Row] = []
    for method, values in maps.items():
        array = values.double().cpu().numpy()
        numbers = {"png_bytes": (png_bytes(array), "bytes"), "entropy": (entropy_bits(array), "bits"),
                   "total_variation": (total_variation(array), "1")}  # fmt: skip
        for metric, (each, unit) in numbers.items():
            where = {"method": method, "metric": metric, "unit": unit}
            rows += [_named(found, n, where | {"value": float(v)}) for n, v in enumerate(each)]
    pasted = torch.tensor([kind == "scene" for kind in found.kind])
    size = maps[LRP].abs().double().cpu()
    share = (size * ~found.inside).sum((1, 2)) / size.sum((1, 2)).clamp(min=1e-300)
    for number in pasted.nonzero().flatten().tolist():
        row = {"method": LRP, "metric": "outside_share", "unit": "1", "value": float(share[number])}
        rows.append(_named(found, number, row))
    compared = {name: maps[name][pasted] for name in (LRP, "noise")}
    areas, used = outside_aopc(
        model, images[pasted], target[pasted], compared, found.inside[pasted], grid, max(1, steps // 2), SEED
    )
    numbers_used = pasted.nonzero().flatten()[used].tolist()
    for method, area in areas.items():
        for number, value in zip(numbers_used, area.tolist(), strict=True):
            row = {"method": method, "metric": "outside_aopc", "unit": "logits", "value": value}
            rows.append(_named(found, number, row))
    return rows


def _named(found: Scenes, number: int, row: Row) -> Row:
    return {"kind": found.kind[number], "photo": found.photo[number], "scene": found.scene[number]} | row
