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
    "two in-fillers": ("sdr/vae/r0", "sdr/mean/r0"),
    "two runs, vae": ("sdr/vae/r0", "sdr/vae/r1"),
    "two runs, mean": ("sdr/mean/r0", "sdr/mean/r1"),
}

Row = dict[str, Any]
Map = tuple[Row, Tensor, Tensor | None]
"""What it is, saliency (N, 1, S, S), and the grid it comes from (N, 1, g, g), None for maps that are no masks."""


def measure(
    context: Context, *, seeds: Sequence[int], tuning_images: int, draws: int, window: int, stride: int, examples: int
) -> Outputs:
    """Measure every map of stage `explain`, and those of gradient, occlusion and a random order.

    The first `tuning_images` are the split `tune`; `curves` are means over the others.
    """
    keep_freed_memory()
    tables: dict[str, list[Row]] = {n: [] for n in ("maps", "boxes", "curves", "agreement", "pictures")}
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


def _stored_maps(mine: dict[str, Tensor], canvas: int, device: str) -> Iterator[Map]:
    penalties = mine["penalties"].tolist()
    for key in sorted(key for key in mine if key.count("/") == 2):
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
        self.truth = [bounding_box(region) for region in scenes.objects[:, 0].cpu().numpy()]

    def measured(self, where: Row, shown: Tensor, grid: Tensor | None) -> tuple[dict[str, Tensor], Tensor]:
        """Metrics, each (N,), and the removal curve under the judge (N, fractions)."""
        ranks = removal_ranks(shown, derive_seed(self.seed, "ties"))
        scenes, found, curves = self.scenes, dict[str, Tensor](), dict[str, Tensor]()
        for judge in JUDGES:
            given = self.nets.classifier, scenes.images, self.nets.infiller(judge, scenes.grounds), scenes.labels
            curves[judge], flips = removal_curves(*given, ranks, self.fractions)
            found[f"flipping_area_{judge}"] = flipping_area(flips, self.fractions)
            found[f"removal_auc_{judge}"] = area_under_curve(curves[judge], self.fractions)
        if grid is None:
            return found, curves["judge"]
        region = (shown > 0.5).float()
        shape = [parts_and_perimeter(mask) for mask in (region[:, 0] > 0).cpu().numpy()]
        found |= {
            "log_odds_before": log_odds(self.nets.classifier(scenes.images), scenes.labels),
            "log_odds_bare": log_odds(self.nets.classifier(scenes.grounds), scenes.labels),
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
        found |= {
            "log_odds_own": removed[0],
            "flips_own": 1 - removed[1],
            "removed_probability": removed[2],
            "kept_hit": kept[1],
            "kept_probability": kept[2],
            "nothing_excess": nothing[2] - 1 / len(self.nets.classes),
        }
        return found, curves["judge"]

    def _filled(self, name: str, hidden: Tensor) -> Tensor:
        """Log-odds, hits and probability of the class with `hidden` filled in, means over draws, (3, N)."""
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
        return torch.stack(found).mean(0)

    def rows(self, where: Row, found: dict[str, Tensor]) -> list[Row]:
        """Rows of each image of the part and each metric."""
        nats = ("log_odds", "removal_auc")
        return [
            where
            | {"image": i, "split": split, "metric": metric, "value": value}
            | {"unit": "nats" if metric.startswith(nats) else "1"}
            for metric, values in found.items()
            for i, (split, value) in enumerate(zip(self.splits, values.double().tolist(), strict=True))
        ]

    def boxes(self, where: Row, shown: Tensor) -> list[Row]:
        """Rows of `boxes`: the map scaled to [0, 1], cut at each threshold."""
        low, high = shown.flatten(1).amin(1), shown.flatten(1).amax(1)
        scaled = ((shown[:, 0] - low[:, None, None]) / (high - low).clamp(min=1e-12)[:, None, None]).cpu().numpy()
        return [
            where | {"image": i, "split": split, "threshold": t, "iou": box_iou(largest_part_box(picture >= t), truth)}
            for i, (picture, split, truth) in enumerate(zip(scaled, self.splits, self.truth, strict=True))
            for t in THRESHOLDS
        ]


def _agreement(mine: dict[str, Tensor]) -> Iterator[Row]:
    """Spearman's rank correlation of the grids of pairs of runs, image by image; NaN for a constant map."""
    for pair, keys in PAIRS.items():
        grids = [mine[key].flatten(2).numpy() for key in keys if key in mine]
        for penalty, *both in zip(mine["penalties"].tolist(), *grids, strict=True) if len(grids) == 2 else ():
            for image, maps in enumerate(zip(*both, strict=True)):
                ranks = [rankdata(values) for values in maps]
                constant = any(np.ptp(r) == 0 for r in ranks)
                value = float("nan") if constant else float(np.corrcoef(*ranks)[0, 1])
                where = {"penalty": penalty, "image": image, "pair": pair}
                yield where | {"metric": "spearman", "value": value, "unit": "1"}
