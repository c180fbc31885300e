"""The classifier that is explained, and the nets of a seed as the later stages take them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.methods.infilling import Blur, Constant, Generative, Infiller, Known, Local, RandomColour, Regression
from restudy.methods.infilling.nets import ConditionalVae, Generator
from restudy.methods.models import derive_seed

NETS = ("classifier", "second", "vae", "gan", "judge")
HEURISTICS = ("mean", "blur", "noise")
GENERATIVE = ("vae", "gan")


class SceneCNN(nn.Module):
    """Four 3 x 3 convolutions with ReLU, two max-pools, the largest activation over all places, logits.

    Inputs (N, 1, S, S) in [0, 1], logits (N, classes). The pooling over places makes it blind to where the object lies,
    away from the borders. `channels` of the first convolution; the others have 3, 6 and 8 times as many. `seed`
    determines the weights.
    """

    def __init__(self, classes: int, channels: int = 8, *, seed: int = 0) -> None:
        super().__init__()
        c = channels
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "scene cnn"))
            self.body = nn.Sequential(
                *(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(c, 3 * c, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(3 * c, 6 * c, 3, padding=1), nn.ReLU()),
                *(nn.Conv2d(6 * c, 8 * c, 3, padding=1), nn.ReLU()),
            )
            self.logits = nn.Linear(8 * c, classes)

    def features(self, inputs: Tensor) -> Tensor:
        """The layer below the logits, (N, 8 * channels), not negative."""
        found: Tensor = self.body((inputs - 0.4) * 4.0)
        return found.amax((2, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        """Map scenes (N, 1, S, S) to logits (N, classes)."""
        logits: Tensor = self.logits(self.features(inputs))
        return logits


@dataclass(frozen=True)
class Nets:
    """What stage `train` made for a seed; `second` is the classifier whose features measure distances."""

    classifier: SceneCNN
    second: SceneCNN
    vae: ConditionalVae
    gan: Generator
    judge: Generator
    canvas: int
    classes: tuple[int, ...]
    mean: float

    def infiller(self, name: str, grounds: Tensor | None = None) -> Infiller:
        """An in-filler by name; `ground` is the scene without its object, `grounds` (N, 1, S, S)."""
        if name == "ground" and grounds is not None:
            return Known(grounds)
        made: dict[str, Infiller] = {
            "zeros": Constant(0.0),
            "mean": Constant(self.mean),
            "blur": Blur(self.canvas / 7),
            "noise": RandomColour(),
            "local": Local(self.canvas // 8 * 2 + 1),
            "vae": Generative(self.vae),
            "gan": Generative(self.gan),
            "judge": Regression(self.judge),
        }
        return made[name]


def load_nets(weights: Mapping[str, Tensor], seed: int, device: str) -> Nets:
    """The nets of a seed from the tensors of stage `train`; sizes are read off the shapes."""
    mine = {key.removeprefix(f"s{seed}/"): value for key, value in weights.items() if key.startswith(f"s{seed}/")}
    states = {
        net: {key.removeprefix(f"{net}/"): value for key, value in mine.items() if key.startswith(f"{net}/")}
        for net in NETS
    }
    classes = tuple(mine["classes"].tolist())
    built: dict[str, nn.Module] = {
        "classifier": SceneCNN(len(classes), len(states["classifier"]["body.0.weight"])),
        "second": SceneCNN(len(classes), len(states["second"]["body.0.weight"])),
        "vae": ConditionalVae(len(states["vae"]["surroundings.first.weight"])),
        "gan": Generator(len(states["gan"]["surroundings.first.weight"])),
        "judge": Generator(len(states["judge"]["surroundings.first.weight"])),
    }
    for name, net in built.items():
        net.load_state_dict(states[name])
        net.eval().requires_grad_(False).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Nets(**built, canvas=int(mine["canvas"]), classes=classes, mean=float(mine["mean"]))  # type: ignore[arg-type]
