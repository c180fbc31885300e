"""Stage `fill`: what each in-filler puts into a hole, before any explanation is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.infilling import Noise, composite, log_odds
from restudy.methods.infilling.quality import neighbour_distance, seam
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.counterfactual_infill.nets import Nets, load_nets
from restudy.studies.counterfactual_infill.scenes import Scenes, empty_squares, make, square_masks
from restudy.studies.counterfactual_infill.tidy import FILLS, PICTURES

NAMES = ("zeros", "mean", "blur", "noise", "local", "vae", "gan", "judge", "ground")


def measure_fills(
    context: Context, *, seeds: Sequence[int], scenes: int, neighbours: int, real_scenes: int, examples: int
) -> Outputs:
    """Fill holes of test scenes with every in-filler.

    Returns `fills`, one row per image and metric: `distance` (of the completed scene to its nearest real ones, in the
    second classifier's features, over the mean of that of untouched scenes), `odd_change` (absolute change of the
    log-odds when a square without object is filled), `seam`, `hidden_excess` (share of right classes above chance once
    the object's square is hidden), `hidden_probability` of that class, `leak` (largest change of the fill when the
    hidden pixels change). And `samples`, pictures of seed 0.
    """
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    pictures: list[dict[str, Any]] = []
    for seed in seeds:
        nets = load_nets(context.tensors("weights"), seed, context.device)
        test = make("test", scenes, nets.canvas, nets.classes, seed, "fills").to(context.device)
        real = make("train", real_scenes, nets.canvas, nets.classes, seed, "real").to(context.device)
        holes = {
            "anywhere": _anywhere(test, seed),
            "empty": empty_squares(test, seed).float(),
            "object": test.squares().float(),
        }
        known = _features(nets, real.images)
        before = neighbour_distance(_features(nets, test.images), known, neighbours).mean()
        for name in NAMES:
            done = {hole: _completed(nets, name, test, hidden, seed) for hole, hidden in holes.items()}
            found = _found(nets, test, done, holes, known, neighbours, before)
            found["leak"] = (_leak(nets, name, test, holes["object"], seed), "1")
            rows += [
                {"seed": seed, "infiller": name, "image": i, "metric": metric, "value": value, "unit": unit}
                for metric, (values, unit) in found.items()
                for i, value in enumerate(values.double().tolist())
            ]
            if seed == 0:
                pictures += _pictures(done, seed, name, examples)
        if seed:
            continue
        shown = {"scene": test.images} | {hole: test.images * (1 - hidden) for hole, hidden in holes.items()}
        pictures += _pictures(shown, seed, "hidden", examples)
    return {
        "fills": pa.Table.from_pylist(rows, schema=FILLS),
        "samples": pa.Table.from_pylist(pictures, schema=PICTURES),
    }


def _anywhere(test: Scenes, seed: int) -> Tensor:
    """Squares of a third of the canvas's side at random places, float (N, 1, S, S)."""
    canvas = test.images.shape[-1]
    generator = torch.Generator().manual_seed(derive_seed(seed, "squares anywhere"))
    corners = torch.randint(0, canvas - canvas // 3 + 1, (len(test), 2), generator=generator)
    return square_masks(corners.to(test.images.device), canvas // 3, canvas).float()


def _noise(nets: Nets, name: str, test: Scenes, seed: int) -> Tensor:
    seeds = [derive_seed(seed, "fill", i) for i in range(len(test))]
    shape = nets.infiller(name, test.grounds).noise_shape(nets.canvas)
    return Noise(seeds, test.images.device).normal(*shape)


def _completed(nets: Nets, name: str, test: Scenes, hidden: Tensor, seed: int) -> Tensor:
    pictures = nets.infiller(name, test.grounds)(test.images, hidden, _noise(nets, name, test, seed))
    return composite(test.images, pictures, hidden)


def _features(nets: Nets, images: Tensor) -> Tensor:
    with torch.no_grad():
        return nets.second.features(images)


@torch.no_grad()
def _found(
    nets: Nets,
    test: Scenes,
    done: dict[str, Tensor],
    holes: dict[str, Tensor],
    known: Tensor,
    neighbours: int,
    before: Tensor,
) -> dict[str, tuple[Tensor, str]]:
    as_it_was = log_odds(nets.classifier(test.images), test.labels)
    odd = log_odds(nets.classifier(done["empty"]), test.labels)
    without = nets.classifier(done["object"])
    share = without.softmax(1).gather(1, test.labels[:, None])[:, 0]
    return {
        "distance": (neighbour_distance(_features(nets, done["anywhere"]), known, neighbours) / before, "1"),
        "odd_change": ((odd - as_it_was).abs(), "nats"),
        "seam": (seam(test.images, done["anywhere"], holes["anywhere"]), "1"),
        "hidden_excess": ((without.argmax(1) == test.labels).float() - 1 / len(nets.classes), "1"),
        "hidden_probability": (share, "1"),
    }


def _leak(nets: Nets, name: str, test: Scenes, hidden: Tensor, seed: int) -> Tensor:
    """Largest absolute change of a hidden pixel's fill when all hidden pixels are exchanged, (N,)."""
    noise = _noise(nets, name, test, seed)
    generator = torch.Generator().manual_seed(derive_seed(seed, "other pixels"))
    other = torch.where(hidden > 0, torch.rand(test.images.shape, generator=generator).to(hidden.device), test.images)
    infiller = nets.infiller(name, test.grounds)
    change = (infiller(other, hidden, noise) - infiller(test.images, hidden, noise)).abs() * hidden
    return change.flatten(1).amax(1)


def _pictures(done: dict[str, Tensor], seed: int, name: str, examples: int) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "image": i, "row": hole, "column": name, "side": picture.shape[-1]}
        | {"values": picture[i].flatten().cpu().numpy()}
        for hole, picture in done.items()
        for i in range(min(examples, len(picture)))
    ]
