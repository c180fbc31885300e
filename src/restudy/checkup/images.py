"""A user's images and labels from a folder and a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")
MIXED_SIZE = 224
"""Side to which images of different sizes are brought where none is asked for."""


@dataclass(frozen=True)
class Images:
    """Images as the model takes them, (N, C, H, W) float32, their names, and labels int64 (N,) or None."""

    names: list[str]
    inputs: Tensor
    labels: Tensor | None
    low: float
    high: float
    """What black and white become by the scaling: the ends of the input range."""


def input_channels(model: nn.Module) -> int:
    """Return the channels that a model's first convolution reads; 3 where it has none."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            return module.in_channels
    return 3


def load_images(
    folder: str | Path,
    labels: str | Path | None = None,
    *,
    channels: int = 3,
    size: int | None = None,
    mean: Sequence[float] = (0.0,),
    std: Sequence[float] = (1.0,),
    limit: int | None = None,
) -> Images:
    """Read all images of a folder, in the order of their names.

    Args:
        folder: holds pictures, colour or grey; subfolders are left alone.
        labels: text with a line `name,label` for each image, or with one label a line in the order of the names.
        channels: 3 turns grey into three equal channels, 1 colour into grey.
        size: side of the square inputs: the shorter side is resized to it, the middle is cut out. Without it images of
            one size stay as they are, others become 224.
        mean, std: inputs are (pixel - mean) / std with pixels in [0, 1]; one number, or one a channel.
        limit: at most this many images.

    Raises:
        ConfigError: no folder, no pictures, one that cannot be read, labels that do not fit.
    """
    place = Path(folder)
    if limit is not None and limit < 1:
        raise ConfigError(f"--limit {limit}", where="check", remedy="give at least 1")
    if not place.is_dir():
        raise ConfigError("is no folder", where=str(place), remedy="give a folder of pictures")
    paths = sorted(path for path in place.iterdir() if path.suffix.lower() in SUFFIXES)[:limit]
    if not paths:
        raise ConfigError("holds no pictures", where=str(place), remedy=f"known endings: {', '.join(SUFFIXES)}")
    if channels not in (1, 3):
        raise ConfigError(f"the model reads {channels} channels", where="check", remedy="pictures have 1 or 3")
    pixels = [_read(path, channels) for path in paths]
    if size is None and len({image.shape for image in pixels}) > 1:
        size = MIXED_SIZE
    if size is not None:
        pixels = [_square(image, size) for image in pixels]
    names = [path.name for path in paths]
    scaled, ends = _scaled(torch.stack(pixels), mean, std)
    return Images(names, scaled, None if labels is None else read_labels(labels, names), *ends)


def read_labels(path: str | Path, names: Sequence[str]) -> Tensor:
    """Return the label of each name, int64 (N,), from lines `name,label` or lines of labels alone.

    Raises:
        ConfigError: no such file, a line that is neither, a name without a label.
    """
    file = Path(path)
    if not file.is_file():
        raise ConfigError("is no file", where=str(file), remedy="give a text of labels")
    remedy = "write `name,label`, labels being whole numbers from 0"
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError):
        raise ConfigError("is no text", where=str(file), remedy=remedy) from None
    if any("," in line for line in lines):
        if bare := [line for line in lines if "," not in line]:
            raise ConfigError(f"line {bare[0]!r:.40} has no label", where=str(file), remedy=remedy)
        split = [line.rpartition(",") for line in lines]
        pairs = {name.strip(): label.strip() for name, _, label in split}
        if missing := [name for name in names if name not in pairs]:
            raise ConfigError(f"no label for {missing[0]}", where=str(file), remedy="add a line `name,label`")
        texts = [pairs[name] for name in names]
    else:
        texts = lines[: len(names)]
    found = []
    for text in texts:
        if not text.isdecimal() or len(text) > 9:
            raise ConfigError(f"{text!r:.40} is no label", where=str(file), remedy=remedy)
        found.append(int(text))
    if len(found) != len(names):
        raise ConfigError(f"{len(found)} labels for {len(names)} images", where=str(file), remedy="one for each")
    return torch.tensor(found, dtype=torch.int64)


def _read(path: Path, channels: int) -> Tensor:
    from PIL import Image

    try:
        with Image.open(path) as image:
            deep = image.mode == "F" or image.mode.startswith("I")
            array = np.array(image if deep else image.convert("L" if channels == 1 else "RGB"), dtype=np.float32)
            mode = image.mode
    except Exception as error:  # PIL raises many kinds for a broken file
        raise ConfigError("cannot be read", where=str(path), remedy="remove it or mend it") from error
    pixels = torch.from_numpy(array / (255 if not deep else 1 if mode == "F" else 65535))
    if not bool(torch.isfinite(pixels).all()):
        raise ConfigError("has pixels that are not finite", where=str(path), remedy="remove it or mend it")
    low, high = float(pixels.min()), float(pixels.max())
    if low < 0 or high > 1:
        ends = "0 to 1" if mode == "F" else "0 to 65535"
        remedy = f"bring them to {ends}, or save 8 bits a channel"
        raise ConfigError(f"has pixels outside {ends}", where=str(path), remedy=remedy)
    if deep:
        return pixels[None].repeat(channels, 1, 1)
    return pixels[None] if channels == 1 else pixels.permute(2, 0, 1)


def _square(image: Tensor, size: int) -> Tensor:
    if size < 1:
        raise ConfigError(f"--size {size}", where="check", remedy="give a number of pixels")
    height, width = image.shape[1:]
    shape = tuple(max(size, round(side * size / min(height, width))) for side in (height, width))
    resized = F.interpolate(image[None], shape, mode="bilinear", antialias=True)[0]
    top, left = ((side - size) // 2 for side in shape)
    return resized[:, top : top + size, left : left + size]


def _scaled(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> tuple[Tensor, tuple[float, float]]:
    middle, spread = (torch.tensor(list(values), dtype=torch.float32) for values in (mean, std))
    if any(len(values) not in (1, images.shape[1]) for values in (middle, spread)) or not bool((spread > 0).all()):
        raise ConfigError(
            f"--mean {_given(mean)} and --std {_given(std)}",
            where="check",
            remedy=f"give one number or {images.shape[1]}, --std above 0",
        )
    low, high = float(((0 - middle) / spread).min()), float(((1 - middle) / spread).max())
    return (images - middle.view(-1, 1, 1)) / spread.view(-1, 1, 1), (low, high)


def _given(values: Sequence[float]) -> str:
    return ",".join(f"{value:g}" for value in values)
