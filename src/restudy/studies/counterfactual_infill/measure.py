"""Stage `measure`: what the maps are worth, under their own in-filler and under a judge that none was made with.

The judge is a regression, trained on other holes from other weights; a second one is the scene without its object,
which is known here. Neither is ever an in-filler of the optimisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.infilling import Noise, composite, log_odds, occlusion
from restudy.methods.infilling.concrete import upsampled
from restudy.methods.infilling.objectives import saliency
from restudy.methods.infilling.regions import (
    area_under_curve,
    bounding_box,
    box_iou,
    flipping_area,
    largest_part_box,
    parts_and_perimeter,
    removal_curves,
    removal_fractions,
    removal_ranks,
)
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory

from .experiment import picture_rows
from .models import Nets, Scenes, load_nets, under

SHOWN_PENALTY = 0.6
THRESHOLDS = tuple(round(0.1 * i, 1) for i in range(1, 10))
JUDGES = ("judge", "ground")
MATRIX = ("mean", "blur", "noise", "vae", "gan")
PAIRS = {
    "two in-fillers": (("vae", 0), ("mean", 0)),
    "two runs, vae": (("vae", 0), ("vae", 1)),
    "two runs, mean": (("mean", 0), ("mean", 1)),
}

Where = dict[str, Any]
Map = tuple[Where, Tensor, Tensor | None]
"""What it is, saliency (N, 1, S, S), and the grid it comes from (N, 1, g, g), None for maps that are no masks."""


def measure(
    context: Context, *, seeds: Sequence[int], tuning_images: int, draws: int, window: int, stride: int, examples: int
) -> Outputs:
    """Measure every map of stage `explain`, and those of gradient, occlusion and a random order.

    Returns `maps` (one row per map, image and metric; the first `tuning_images` have the split `tune`), `boxes` (IoU of
    the box at each threshold with the object's), `curves` (log-odds against the share removed, mean over the test
    split), `agreement` (rank correlations of maps) and `pictures` of the first seed for the figure.
    """
    keep_freed_memory()
    tables: dict[str, list[dict[str, Any]]] = {n: [] for n in ("maps", "boxes", "curves", "agreement", "pictures")}
    stored, kept = context.tensors("masks"), slice(tuning_images, tuning_images + examples)
    for seed in seeds:
        nets = load_nets(context.tensors("weights"), seed, context.device)
        mine = under(stored, f"s{seed}/")
        scenes = Scenes(**under(mine, "scenes/")).to(context.device)
        judge = _Judge(nets, scenes, seed, tuning_images, draws)
        masks = list(_stored_maps(mine, nets.canvas, context.device))
        for where, shown, grid in [*masks, *_other_maps(nets, scenes, seed, window, stride)]:
            where = {"seed": seed} | where
            found, curve = judge.measured(where, shown, grid)
            tables["maps"] += judge.rows(where, found)
            tables["boxes"] += judge.boxes(where, shown)
            tables["curves"] += [
                where | {"fraction": f, "log_odds": v}
                for f, v in zip(judge.fractions.tolist(), curve[tuning_images:].mean(0).tolist(), strict=True)
            ]
            if seed == 0 and not where["restart"] and where["penalty"] in (0.0, SHOWN_PENALTY):
                names = {"row": where["method"], "column": where["infiller"]}
                tables["pictures"] += picture_rows(shown[kept], tuning_images, **names)
        tables["agreement"] += [{"seed": seed} | row for row in _agreement(mine)]
        if seed == 0:
            tables["pictures"] += picture_rows(scenes.images[kept], tuning_images, row="scene", column="")
    return tables


def _unit(metric: str) -> str:
    return "nats" if metric.startswith(("log_odds", "removal_auc")) else "1"


def _stored_maps(mine: dict[str, Tensor], canvas: int, device: str) -> Iterator[Map]:
    penalties = mine["penalties"].tolist()
    for key in sorted(mine):
        if key.count("/") != 2:
            continue
        method, infiller, restart = key.split("/")
        for penalty, grid in zip(penalties, mine[key].to(device), strict=True):
            where = {"method": method, "infiller": infiller, "restart": int(restart[1:]), "penalty": penalty}
            theta = upsampled(grid, canvas)
            yield where, saliency(theta, "ssr" if method == "ssr" else "sdr"), grid


def _other_maps(nets: Nets, scenes: Scenes, seed: int, window: int, stride: int) -> Iterator[Map]:
    """Absolute gradient of the log-odds, occlusion with the mean, and cells of the coarse grid in random order."""
    images = scenes.images.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(log_odds(nets.classifier(images), scenes.labels).sum(), images)
    where = {"infiller": "", "restart": 0, "penalty": 0.0}
    yield {"method": "gradient"} | where, gradient.abs(), None
    seeds = [derive_seed(seed, "occlusion", i) for i in range(len(scenes))]
    mean = nets.infiller("mean")
    fall = occlusion(nets.classifier, scenes.images, scenes.labels, mean, seeds, window=window, stride=stride)
    yield {"method": "occlusion"} | where | {"infiller": "mean"}, fall, None
    seeds = [derive_seed(seed, "random order", i) for i in range(len(scenes))]
    cells = Noise(seeds, images.device).uniform(1, 14, 14)
    yield {"method": "random"} | where, upsampled(cells, nets.canvas), None


class _Judge:
    """Measures maps of one seed."""

    def __init__(self, nets: Nets, scenes: Scenes, seed: int, tuning_images: int, draws: int) -> None:
        self.nets, self.scenes, self.seed, self.draws = nets, scenes, seed, draws
        self.splits = ["tune" if i < tuning_images else "test" for i in range(len(scenes))]
        self.fractions = removal_fractions()
        with torch.no_grad():
            self.before = log_odds(nets.classifier(scenes.images), scenes.labels)
            self.bare = log_odds(nets.classifier(scenes.grounds), scenes.labels)
        self.truth = [bounding_box(region) for region in scenes.objects[:, 0].cpu().numpy()]

    def measured(self, where: Where, shown: Tensor, grid: Tensor | None) -> tuple[dict[str, Tensor], Tensor]:
        """Metrics, each (N,), and the removal curve under the judge (N, fractions)."""
        ranks = removal_ranks(shown, derive_seed(self.seed, "ties"))
        found: dict[str, Tensor] = {}
        curves = {}
        for judge in JUDGES:
            infiller = self.nets.infiller(judge, self.scenes.grounds)
            curve, flips = removal_curves(
                self.nets.classifier, self.scenes.images, infiller, self.scenes.labels, ranks, self.fractions
            )
            found[f"flipping_area_{judge}"] = flipping_area(flips, self.fractions)
            found[f"removal_auc_{judge}"] = area_under_curve(curve, self.fractions)
            curves[judge] = curve
        if grid is not None:
            found |= self._mask_metrics(where, shown, grid)
        return found, curves["judge"]

    def _mask_metrics(self, where: Where, shown: Tensor, grid: Tensor) -> dict[str, Tensor]:
        region = (shown > 0.5).float()
        shape = [parts_and_perimeter(mask) for mask in (region[:, 0] > 0).cpu().numpy()]
        found = {
            "log_odds_before": self.before,
            "log_odds_bare": self.bare,
            "area": region.flatten(1).mean(1),
            "mean_area": shown.flatten(1).mean(1),
            "undecided": ((grid > 0.1) & (grid < 0.9)).float().flatten(1).mean(1),
            "parts": torch.tensor([float(parts) for parts, _ in shape]),
            "perimeter2_over_area": torch.tensor([value for _, value in shape]),
        }
        for name in JUDGES if where["method"] != "sdr" else (*JUDGES, *MATRIX):
            odds, hits, _ = self._filled(name, region)
            found |= {f"log_odds_{name}": odds, f"flips_{name}": 1 - hits}
        removed, kept = self._filled(where["infiller"], region), self._filled(where["infiller"], 1 - region)
        nothing = self._filled(where["infiller"], torch.ones_like(region))
        return found | {
            "log_odds_own": removed[0],
            "flips_own": 1 - removed[1],
            "removed_probability": removed[2],
            "kept_hit": kept[1],
            "kept_probability": kept[2],
            "nothing_excess": nothing[2] - 1 / len(self.nets.classes),
        }

    def _filled(self, name: str, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log-odds, hits and probability of the class with `hidden` filled by an in-filler, means over draws, (N,)."""
        scenes, infiller = self.scenes, self.nets.infiller(name, self.scenes.grounds)
        seeds = [derive_seed(self.seed, "own fill", i) for i in range(len(scenes))]
        noise = Noise(seeds, hidden.device).normal(self.draws, *infiller.noise_shape(self.nets.canvas))
        found = []
        for draw in range(self.draws if noise.numel() else 1):
            pictures = infiller(scenes.images, hidden, noise[:, draw])
            logits = self.nets.classifier(composite(scenes.images, pictures, hidden))
            hits = (logits.argmax(1) == scenes.labels).float()
            share = logits.softmax(1).gather(1, scenes.labels[:, None])[:, 0]
            found.append(torch.stack([log_odds(logits, scenes.labels), hits, share]))
        odds, hits, share = torch.stack(found).mean(0)
        return odds, hits, share

    def rows(self, where: Where, found: dict[str, Tensor]) -> list[dict[str, Any]]:
        """Rows of `maps`."""
        return [
            where | {"image": i, "split": split, "metric": metric, "value": value, "unit": _unit(metric)}
            for metric, values in found.items()
            for i, (split, value) in enumerate(zip(self.splits, values.double().tolist(), strict=True))
        ]

    def boxes(self, where: Where, shown: Tensor) -> list[dict[str, Any]]:
        """Rows of `boxes`: the map scaled to [0, 1], cut at each threshold."""
        low, high = shown.flatten(1).amin(1), shown.flatten(1).amax(1)
        scaled = ((shown[:, 0] - low[:, None, None]) / (high - low).clamp(min=1e-12)[:, None, None]).cpu().numpy()
        return [
            where | {"image": i, "split": split, "threshold": t, "iou": box_iou(largest_part_box(picture >= t), truth)}
            for i, (picture, split, truth) in enumerate(zip(scaled, self.splits, self.truth, strict=True))
            for t in THRESHOLDS
        ]


def _agreement(mine: dict[str, Tensor]) -> Iterator[dict[str, Any]]:
    """Spearman's rank correlation of the grids of pairs of runs, image by image; NaN for a constant map."""
    for pair, (one, other) in PAIRS.items():
        keys = [f"sdr/{name}/r{restart}" for name, restart in (one, other)]
        if not all(key in mine for key in keys):
            continue
        for number, penalty in enumerate(mine["penalties"].tolist()):
            grids = [mine[key][number].flatten(1).numpy() for key in keys]
            for image, (a, b) in enumerate(zip(*grids, strict=True)):
                ranks = rankdata(a), rankdata(b)
                constant = any(np.ptp(r) == 0 for r in ranks)
                value = float("nan") if constant else float(np.corrcoef(*ranks)[0, 1])
                where = {"penalty": penalty, "image": image, "pair": pair}
                yield where | {"metric": "spearman", "value": value, "unit": "1"}
