"""Stage `photos`: EfficientNet-Lite0 with its ImageNet weights, asked about scenes and photographs.

One fixed model, so scenes are the replicates and what comes out is said of this model only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.data import imagenet_lite0, stamps
from restudy.data import photos as photo_data
from restudy.methods.models import derive_seed
from restudy.methods.models.efficientnet import MEAN, STD, load_lite0
from restudy.methods.perturbation import (
    SCORES,
    Grid,
    aopc,
    entropy_bits,
    perturbation_curves,
    png_bytes,
    total_variation,
)
from restudy.studies.relevance_evaluation import nets
from restudy.studies.relevance_evaluation.explain import LRP, explained, fill_named
from restudy.studies.relevance_evaluation.outside import outside_aopc
from restudy.studies.relevance_evaluation.perturb import UNITS, merged, region_orders
from restudy.studies.relevance_evaluation.pictures import picture
from restudy.studies.relevance_evaluation.scenes import Scenes, scenes
from restudy.studies.relevance_evaluation.tidy import PHOTO_AOPC, PHOTO_MAPS, PHOTO_MEASURES

SEED = 0  # one fixed model: of random parts there are only the scenes, the fills and the orders
LOW, HIGH = -MEAN / STD, (1 - MEAN) / STD


def perturb_photos(
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
    """Perturb scenes and plain crops; returns `photo_aopc`, `photo_measures` and `photo_maps` (see `tidy`)."""
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
    target = nets.predicted(model, images, batch_size)
    maps = explained(model, images, target, methods, epsilon=epsilon, noise_seed=derive_seed(SEED, "noise"),
                     batch_size=batch_size)  # fmt: skip
    grid = Grid.of(images, region)
    orders = region_orders(maps, grid, random_orders, derive_seed(SEED, "photo orders"))
    rows: list[dict[str, Any]] = []
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
    return {
        "photo_aopc": pa.Table.from_pylist(rows, schema=PHOTO_AOPC),
        "photo_measures": pa.Table.from_pylist(
            _measures(found, model, images, target, maps, grid, grid.steps(min(shares))), schema=PHOTO_MEASURES
        ),
        "photo_maps": pa.Table.from_pylist(shown, schema=PHOTO_MAPS),
    }


def _each(found: Scenes, where: Mapping[str, Any], starts: Sequence[float], values: Sequence[float]) -> list[Any]:
    return [
        {"kind": kind, "photo": photo, "scene": scene, "start": start, "value": value} | dict(where)
        for kind, photo, scene, start, value in zip(found.kind, found.photo, found.scene, starts, values, strict=True)
    ]


def _measures(
    found: Scenes, model: nn.Module, images: Tensor, target: Tensor, maps: dict[str, Tensor], grid: Grid, steps: int
) -> list[dict[str, Any]]:
    """Complexity of every map; relevance outside the animal and its AOPC, for the scenes."""
    rows: list[dict[str, Any]] = []
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


def _named(found: Scenes, number: int, row: dict[str, Any]) -> dict[str, Any]:
    return {"kind": found.kind[number], "photo": found.photo[number], "scene": found.scene[number]} | row
