"""Stage `probe`: what heatmaps are like and how they react: complexity, likeness, jumps, stability, places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.perturbation import entropy_bits, png_bytes, total_variation
from restudy.methods.relevance import conservation
from restudy.studies.relevance_evaluation import nets
from restudy.studies.relevance_evaluation.average import class_average_rows
from restudy.studies.relevance_evaluation.explain import LRP, explained
from restudy.studies.relevance_evaluation.nets import Images
from restudy.studies.relevance_evaluation.outside import outside_rows
from restudy.studies.relevance_evaluation.pictures import gallery, strips
from restudy.studies.relevance_evaluation.reactions import jump_rows, likeness_rows, stability_rows
from restudy.studies.relevance_evaluation.tidy import EPSILONS, MAPS, MEASURES, STRIPS

PROBED = ("sensitivity", "deconvolution", "deconvolution_no_switches", LRP, "lrp_epsilon", "gradient_x_input", "noise")


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


def probe_maps(
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
    """Measure the heatmaps of each seed's net; returns `measures`, `epsilons`, `maps` and `strips` (see `tidy`).

    Runs on the CPU whatever the device: the nets are small, and much of the work is numpy's.
    """
    weights = context.tensors("weights")
    rows: list[dict[str, Any]] = []
    stable: list[dict[str, Any]] = []
    kept: dict[str, list[dict[str, Any]]] = {"maps": [], "strips": []}
    for seed in seeds:
        model = nets.restored(channels, hidden, weights, f"{pair}/s{seed}/true")
        shown = nets.drawn(pair, "test", images, seed, "explain")
        target = nets.predicted(model, shown.images, 256)
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
            bare = nets.restored(channels, hidden, weights, f"{pair}/s{seed}/bias_free")
            few = shown.images[:epsilon_images]
            stable += [place | row for row in epsilon_rows(bare, few, epsilons)]
        if seed == 0:
            kept["maps"] += [place | row for row in gallery(maps, shown.images, examples)]
            kept["strips"] += [place | row for row in strips(case, maps)]
    return {
        "measures": pa.Table.from_pylist(rows, schema=MEASURES),
        "epsilons": pa.Table.from_pylist(stable, schema=EPSILONS),
        "maps": pa.Table.from_pylist(kept["maps"], schema=MAPS),
        "strips": pa.Table.from_pylist(kept["strips"], schema=STRIPS),
    }


def complexity_rows(maps: dict[str, Tensor], foreground: Tensor) -> list[dict[str, Any]]:
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


def epsilon_rows(model: nn.Module, images: Tensor, epsilons: Sequence[float]) -> list[dict[str, Any]]:
    """Conservation gap and largest relevance of single images under the epsilon rule, float64, net without biases.

    Both relative to the logit, so that images compare.
    """
    double, points = model.double(), images.double()
    target = nets.predicted(double, points, 256)
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
