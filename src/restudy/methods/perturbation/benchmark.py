"""Measure region perturbation against Quantus on one machine: same maps, same grid, same fill, same net.

Quantus is optional: where it is missing, the row says so. Times are CPU seconds of this process, the least of several
rounds in which both sides alternate; read ratios, not seconds. Quantus returns the drops f(x^0) - f(x^k) for
k = 1 ... L; AOPC is their sum over L + 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.methods.attribution.benchmark import channels_last, problem
from restudy.methods.perturbation.curves import aopc, perturbation_curves
from restudy.methods.perturbation.fills import constant
from restudy.methods.perturbation.regions import Grid, region_order
from restudy.peers import import_peer
from restudy.timing import race

REGION, SHARE = 4, 0.6


def against_quantus(
    model: nn.Module, images: Tensor, target: Tensor, maps: dict[str, Tensor], *, repeats: int = 3
) -> dict[str, Any]:
    """Compare AOPC of several heatmaps, most relevant regions first, black in their place.

    Args:
        images: (N, 1, H, W) that hold a 0 each: Quantus' black is the least value of the image.
        maps: heatmaps (N, H, W).

    Our side converts its net to channels last, as the studies do; the peer gets it as it was built.

    Returns `ours_s`, `quantus_s`, `ratio`, `difference` (largest of an image's AOPC),
    `images_per_s`; without Quantus `skipped`, the reason.
    """
    quantus, reason = import_peer("quantus")
    if quantus is None:
        return {"skipped": reason}
    fast = channels_last(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs: list[Callable[[], Any]] = [
            lambda: _ours(fast, images, target, maps),
            lambda: _theirs(quantus, model, images, target, maps),
        ]
        pair, (ours_s, quantus_s) = race(runs, repeats)
    difference = max(float(np.abs(pair[0][name] - pair[1][name]).max()) for name in maps)
    count = len(images) * len(maps) * Grid.of(images, REGION).steps(SHARE)
    return {
        "ours_s": ours_s,
        "quantus_s": quantus_s,
        "ratio": quantus_s / ours_s,
        "difference": difference,
        "images_per_s": count / ours_s,
    }


def _ours(net: nn.Module, shown: Tensor, goal: Tensor, maps: dict[str, Tensor]) -> dict[str, Any]:
    grid, generator = Grid.of(shown, REGION), torch.Generator().manual_seed(0)
    orders = {name: region_order(grid.sums(values), "morf", generator) for name, values in maps.items()}
    steps = grid.steps(SHARE)
    found = perturbation_curves(net, shown, goal, orders, grid, constant(0.0), steps=steps, generator=generator)
    return {name: aopc(curves.logit).numpy() for name, curves in found.items()}


def _theirs(quantus: Any, net: nn.Module, shown: Tensor, goal: Tensor, maps: dict[str, Tensor]) -> dict[str, Any]:
    steps = Grid.of(shown, REGION).steps(SHARE)
    metric = quantus.RegionPerturbation(
        patch_size=REGION, order="morf", regions_evaluation=steps, normalise=False, disable_warnings=True
    )
    found = {}
    for name, values in maps.items():
        drops = metric(
            model=net,
            x_batch=shown.numpy(),
            y_batch=goal.numpy(),
            a_batch=values[:, None].numpy(),
            channel_first=True,
            softmax=False,
            batch_size=len(shown),
        )
        found[name] = np.asarray(drops, dtype=np.float64).sum(1) / (steps + 1)
    return found


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`."""
    from restudy.methods.relevance import heatmaps

    model, smooth, target = problem(64)
    smooth = (smooth - smooth.amin((2, 3), keepdim=True)).contiguous()
    at = torch.linspace(-1, 1, smooth.shape[-1])
    disc = (at[:, None].square() + at.square() < 0.6).to(smooth)
    found = []
    for what, images in (("objects on black", (smooth * disc).contiguous()), ("images without black", smooth)):
        maps = heatmaps(model, images, target, ["sensitivity", "lrp_alpha_beta", "edges"])
        row = against_quantus(model, images, target, maps)
        note = row.get("skipped") or (
            f"{row['images_per_s']:.0f} perturbed images/s; AOPC differs by {row['difference']:.0e} logits"
        )
        name = f"AOPC of three heatmaps against Quantus, {what}"
        found.append({"what": name, "ratio": row.get("ratio"), "aim": 3.0, "note": note})
    return found
