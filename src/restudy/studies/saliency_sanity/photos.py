"""Stage `photos`: the cascade on EfficientNet-Lite0 with its ImageNet weights, asked about photographs.

One fixed model stands for the paper's Inception v3, so photos are the replicates and what comes out is said of this
model only. Crops of one photo belong together and are averaged. In `photo_similarity` a value is NaN where a map is
undefined; state `two_random_nets` compares two nets with all layers random. `photo_maps` holds the first crop of some
photos, channels summed; method `input` is the grey image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import imagenet_lite0
from restudy.data import photos as photo_data
from restudy.methods.models import derive_seed
from restudy.methods.models.efficientnet import load_lite0, scale_pixels
from restudy.methods.models.initializers import BatchNormPolicy
from restudy.methods.similarity import Reference

from .experiment import Row, signed
from .models import CONTROLS, Explained, Settings, maps, predicted, randomized, steps, top_down_layers, usable
from .statistics import METRICS

SEED = 0  # one fixed model: of random parts there are only the re-draws and the noise
CORNERS = ((0.5, 0.5), (0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))  # where a crop sits: centre first


def photos(
    context: Context,
    *,
    pixels: int,
    crops: int,
    crop_share: float,
    blocks: Sequence[str],
    methods: Sequence[str],
    ig_steps: int,
    samples: int,
    sg_ig_samples: int,
    sg_ig_steps: int,
    top_redraws: int,
    full_redraws: int,
    hog_cell: int,
    bn_policy: BatchNormPolicy,
    examples: Sequence[str],
    batch_size: int,
) -> Outputs:
    """Cascade from the top on Lite0 for all photos; returns `photo_similarity` and `photo_maps`.

    The class explained is the one that the trained net predicts. `blocks` names the layers at which a step of the
    cascade ends, from the logits to the stem.
    """
    model = load_lite0(imagenet_lite0.load().weights).to(context.device)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    names, images = cropped(photo_data.load(), crops, crop_share, pixels)
    images = images.to(context.device)
    settings = Settings(ig_steps, samples, sg_ig_samples, sg_ig_steps, batch_size)
    question = Explained(images, predicted(model, images, batch_size), derive_seed(SEED, "noise"))
    chosen = usable(model, methods, images)
    kept = {name: names.index((name, 0)) for name in examples}

    own = maps(model, question, chosen, settings, control_seed=derive_seed(SEED, "noise control"))
    trained = {method: Reference(signed(values), cell=hog_cell) for method, values in own.items()}
    shown = list(_examples(kept, ("trained", 0, ""), own | {"input": images.mean(1, keepdim=True)}))
    rows: list[Row] = []
    full: dict[str, Reference] | None = None
    layers = top_down_layers(model, blocks)
    for step in steps(layers, orders=["top_down"], top_redraws=top_redraws, full_redraws=full_redraws):
        net = randomized(model, step, SEED, bn_policy=bn_policy)
        (role,) = step.roles
        place = (role.state, role.depth, role.layer)
        found = maps(
            net, question, chosen, settings, control_seed=derive_seed(SEED, "noise control", role.depth, step.redraw)
        )
        rows += _rows(names, trained, found, place, step.redraw, hog_cell)
        if len(step.layers) == len(layers):
            if full is not None:
                rows += _rows(names, full, found, ("two_random_nets", 0, ""), step.redraw, hog_cell)
            else:
                full = {method: Reference(signed(values), cell=hog_cell) for method, values in found.items()}
        if step.redraw == 0:
            shown += _examples(kept, place, {m: v for m, v in found.items() if m not in CONTROLS})
    return {"photo_similarity": rows, "photo_maps": shown}


def cropped(
    pictures: Mapping[str, np.ndarray], crops: int, share: float, pixels: int
) -> tuple[list[tuple[str, int]], Tensor]:
    """Square crops of every photo, resized and scaled for the net.

    Args:
        pictures: uint8 (H, W) or (H, W, 3). crops: 1 to 5, the centre first, then the corners.
        share: side of a crop over the photo's shorter side. pixels: side after resizing (bilinear, antialiased).

    Returns:
        (photo, crop) for each image, and the images, float32 (N, 3, pixels, pixels), about [-1, 1].
    """
    names, images = [], []
    for name, photo in pictures.items():
        array = photo[..., None].repeat(3, axis=2) if photo.ndim == 2 else photo
        image = torch.tensor(array, dtype=torch.float32).permute(2, 0, 1) / 255
        side = round(min(image.shape[1:]) * share)
        for crop, (down, right) in enumerate(CORNERS[:crops]):
            top, left = (round((size - side) * at) for size, at in zip(image.shape[1:], (down, right), strict=True))
            part = image[:, top : top + side, left : left + side]
            names.append((name, crop))
            images.append(F.interpolate(part[None], (pixels, pixels), mode="bilinear", antialias=True)[0])
    return names, scale_pixels(torch.stack(images))


def _rows(
    names: Sequence[tuple[str, int]],
    references: Mapping[str, Reference],
    found: Mapping[str, Tensor],
    place: tuple[str, int, str],
    redraw: int,
    cell: int,
) -> Iterator[Row]:
    where = dict(zip(("state", "depth", "layer"), place, strict=True)) | {"redraw": redraw}
    for method, values in found.items():
        compared = references[method].compare(Reference(signed(values), cell=cell), METRICS)
        for metric, numbers in compared.items():
            for (photo, crop), value in zip(names, numbers.tolist(), strict=True):
                about = {"photo": photo, "crop": crop, "method": method, "metric": metric, "unit": "1"}
                yield where | about | {"value": value}


def _examples(kept: Mapping[str, int], place: tuple[str, int, str], found: Mapping[str, Tensor]) -> Iterator[Row]:
    where = dict(zip(("state", "depth", "layer"), place, strict=True))
    for photo, index in kept.items():
        for method, values in found.items():
            array = signed(values[index : index + 1])[0]
            size = {"height": array.shape[0], "width": array.shape[1]}
            flat = {"values": array.astype("float32").ravel()}
            yield {"photo": photo, "method": method} | where | size | flat
