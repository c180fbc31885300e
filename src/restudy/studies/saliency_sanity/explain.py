"""The saliency methods of the paper and the maps of one net, all methods in as few passes as they allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from restudy.methods.attribution import applicable, attribute_many

CONTROLS = ("noise", "edges")


@dataclass(frozen=True)
class Settings:
    """What determines the maps besides net and images.

    `ig_steps`: points of integrated gradients; `samples`: noisy copies of SmoothGrad and VarGrad; `sg_ig_samples` and
    `sg_ig_steps`: copies and points of their combination; `batch_size`: images in a pass.
    """

    ig_steps: int
    samples: int
    sg_ig_samples: int
    sg_ig_steps: int
    batch_size: int
    baseline: float = 0.0

    def options(self, method: str, noise_seed: int) -> dict[str, Any]:
        """Options of a method; all noisy methods see the same noise in every net (common random numbers)."""
        found: dict[str, dict[str, Any]] = {
            "integrated_gradients": {"steps": self.ig_steps, "baseline": self.baseline},
            "smoothgrad": {"samples": self.samples, "seed": noise_seed},
            "vargrad": {"samples": self.samples, "seed": noise_seed},
            "smoothgrad_ig": {
                "samples": self.sg_ig_samples,
                "steps": self.sg_ig_steps,
                "baseline": self.baseline,
                "seed": noise_seed,
            },
        }
        return found.get(method, {})


@dataclass(frozen=True)
class Explained:
    """Images (N, C, H, W) on the net's device and the class explained for each, int64 (N,), the same for all nets."""

    images: Tensor
    target: Tensor
    noise_seed: int


def usable(model: nn.Module, methods: Sequence[str], images: Tensor) -> list[str]:
    """The methods that are defined for a model: GradCAM, for one, needs a convolution."""
    return [name for name in methods if applicable(model, name, images)[0]]


def maps(
    model: nn.Module, shown: Explained, methods: Sequence[str], settings: Settings, *, control_seed: int
) -> dict[str, Tensor]:
    """Maps of all methods and of both controls, name to (N, C, H, W).

    `control_seed`: the iid noise control is drawn anew for each net, so that it is what it stands for, a map that
    knows neither net nor image.
    """
    wanted: dict[str, Mapping[str, Any]] = {m: settings.options(m, shown.noise_seed) for m in methods}
    wanted |= {"noise": {"seed": control_seed}, "edges": {}}
    return attribute_many(model, shown.images, shown.target, wanted, batch_size=settings.batch_size)


def predicted(model: nn.Module, images: Tensor, batch_size: int) -> Tensor:
    """The class with the highest logit, int64 (N,)."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in images.split(batch_size)])  # type: ignore[no-untyped-call]
