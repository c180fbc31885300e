"""The small CNN and the MLP of Adebayo et al. 2018 (arXiv:1810.03292, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.models.initializers import (
    TORCH_DEFAULT,
    Initializer,
    derive_seed,
    initialize_module,
    scaled_truncated_normal,
    truncated_normal,
)
from restudy.methods.models.layers import Layer

InitName = Literal["torch", "paper"]


class _Initialized(nn.Module):
    """A model whose layers are drawn, and drawn anew, from one initialiser."""

    initializer: Initializer
    layer_names: tuple[str, ...]

    def layers_top_down(self) -> list[Layer]:
        """Return the layers from the logits to the input, with the initialiser used at build time."""
        return [Layer(name, (name,), {name: self.initializer}) for name in reversed(self.layer_names)]

    def _initialize(self, seed: int) -> None:
        for name in self.layer_names:
            module = self.get_submodule(name)
            initialize_module(module, self.initializer, derive_seed(seed, "build", name))


class SmallCNN(_Initialized):
    """Two times (convolution, ReLU, max-pool 2), one hidden layer with ReLU, logits.

    Inputs (N, in_channels, image_size, image_size), logits (N, classes). Convolutions keep the size
    ("same"). The paper's own sizes are channels (32, 64) and hidden 1024. `init="torch"` draws torch's
    default, `init="paper"` truncated normal weights of standard deviation .1 and biases .1. `seed`
    determines the weights. Modules: conv1, relu1, pool1, conv2, relu2, pool2, fc1, relu3, logits.
    """

    def __init__(
        self,
        channels: tuple[int, int] = (32, 64),
        hidden: int = 256,
        classes: int = 10,
        in_channels: int = 1,
        kernel: int = 5,
        *,
        image_size: int = 28,
        init: InitName = "torch",
        seed: int = 0,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ConfigError(f"kernel {kernel} is even", where="SmallCNN", remedy="use an odd kernel")
        self.initializer = _initializer(init, truncated_normal(0.1, 0.1))
        self.layer_names = ("conv1", "conv2", "fc1", "logits")
        first, second = channels
        self.conv1 = nn.Conv2d(in_channels, first, kernel, padding=kernel // 2)
        self.relu1, self.pool1 = nn.ReLU(), nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(first, second, kernel, padding=kernel // 2)
        self.relu2, self.pool2 = nn.ReLU(), nn.MaxPool2d(2)
        self.fc1 = nn.Linear(second * (image_size // 4) ** 2, hidden)
        self.relu3 = nn.ReLU()
        self.logits = nn.Linear(hidden, classes)
        self._initialize(seed)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map images (N, C, H, W) to logits (N, classes)."""
        features = self.pool1(self.relu1(self.conv1(inputs)))
        features = self.pool2(self.relu2(self.conv2(features)))
        logits: Tensor = self.logits(self.relu3(self.fc1(features.flatten(1))))
        return logits


class MLP(_Initialized):
    """Fully connected layers with ReLU between them.

    `sizes` runs from the number of inputs to the number of classes; the paper's MLP is
    (784, 2500, 1500, 500, 10). Inputs (N, ...) are flattened, logits are (N, sizes[-1]). `init="paper"` draws
    truncated normal weights of standard deviation 2/sqrt(fan-in), biases zero.
    Modules: fc1, relu1, fc2, relu2, ..., logits.
    """

    def __init__(
        self, sizes: Sequence[int] = (784, 512, 256, 128, 10), *, init: InitName = "torch", seed: int = 0
    ) -> None:
        super().__init__()
        if len(sizes) < 2:
            raise ConfigError(f"sizes {tuple(sizes)} name no layer", where="MLP", remedy="give inputs and classes")
        self.initializer = _initializer(init, scaled_truncated_normal(2.0))
        hidden = len(sizes) - 2
        self.layer_names = (*(f"fc{index + 1}" for index in range(hidden)), "logits")
        for index, (name, fan_in, fan_out) in enumerate(zip(self.layer_names, sizes, sizes[1:], strict=False)):
            self.add_module(name, nn.Linear(fan_in, fan_out))
            if index < hidden:
                self.add_module(f"relu{index + 1}", nn.ReLU())
        self._initialize(seed)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map inputs (N, ...) to logits (N, classes)."""
        features = inputs.flatten(1)
        for module in self.children():
            features = module(features)
        return features


def _initializer(name: str, paper: Initializer) -> Initializer:
    if name not in ("torch", "paper"):
        raise ConfigError(f"init {name!r} is not known", remedy="allowed: torch, paper")
    return paper if name == "paper" else TORCH_DEFAULT
