"""Measure relevance propagation against zennit on one machine: same net, same rule, same stabiliser.

zennit is optional. Times are CPU seconds of this process, the least of several rounds in which both sides
alternate; read ratios, not seconds.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from restudy.methods.attribution.benchmark import problem
from restudy.methods.relevance.api import attribute
from restudy.peers import import_peer
from restudy.timing import race

OPTIONS: dict[str, dict[str, Any]] = {
    "lrp_epsilon": {"epsilon": 0.01},
    "lrp_alpha_beta": {"alpha": 2.0, "beta": 1.0, "stabilizer": 1e-6},
}


def by_zennit(model: nn.Module, images: Tensor, target: Tensor, method: str, options: Mapping[str, float]) -> Tensor:
    """Return zennit's relevance (N, C, H, W), started with the logit; convolutions, linear layers, ReLU, pools."""
    names = ("attribution", "composites", "rules", "layer", "types")
    attribution, composites, rules, layers, types = (importlib.import_module(f"zennit.{name}") for name in names)
    if method == "lrp_epsilon":
        layer, norm = rules.Epsilon(options["epsilon"]), rules.Norm(options["epsilon"])
    else:
        layer = rules.AlphaBeta(options["alpha"], options["beta"], stabilizer=options["stabilizer"])
        norm = rules.Norm(options["stabilizer"])
    kinds = [(types.Convolution, layer), (types.Linear, layer), (types.Activation, rules.Pass())]
    kinds += [(types.AvgPool, norm), (layers.Sum, norm)]
    with attribution.Gradient(model, composites.LayerMapComposite(kinds)) as attributor:
        logits = model(images).detach()
        start = torch.zeros_like(logits).scatter(1, target[:, None], logits.gather(1, target[:, None]))
        _, relevance = attributor(images, start)
    found: Tensor = relevance.detach()
    return found


def against_zennit(
    model: nn.Module, images: Tensor, target: Tensor, method: str, *, repeats: int = 5
) -> dict[str, Any]:
    """Return `ours_s`, `zennit_s`, `ratio`, `difference` (largest, relative); without zennit `skipped`, the reason."""
    if reason := import_peer("zennit")[1]:
        return {"skipped": reason}
    options = OPTIONS[method]
    (ours, theirs), (ours_s, zennit_s) = race(
        [
            lambda: attribute(model, images, target, method, **options),
            lambda: by_zennit(model, images, target, method, options),
        ],
        repeats,
    )
    difference = float((ours - theirs).abs().max() / theirs.abs().max())
    return {"ours_s": ours_s, "zennit_s": zennit_s, "ratio": zennit_s / ours_s, "difference": difference}


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`."""
    model, images, target = problem(64)
    found = []
    for method in OPTIONS:
        row = against_zennit(model, images, target, method)
        note = row.get("skipped") or f"largest relative difference {row['difference']:.1e}"
        found.append({"what": f"{method} against zennit", "ratio": row.get("ratio"), "aim": 1.0, "note": note})
    return found
