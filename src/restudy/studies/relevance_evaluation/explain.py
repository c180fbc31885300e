"""The heatmaps that the study compares, and the fills that it perturbs with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor, nn

from restudy.methods.perturbation import Fill, blur, constant, from_images, image_mean, uniform
from restudy.methods.relevance import HEATMAPS, Heatmap, heatmap, heatmaps

LRP = "lrp_alpha_beta"
FILLS = ("uniform", "mean", "blur", "dataset", "black")


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
