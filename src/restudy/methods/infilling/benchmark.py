"""Masks of 24 images in one batch against one image at a time, as the released code makes them."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from restudy.methods.infilling import Constant, Infiller, Masks, Settings, fido
from restudy.methods.infilling.fillers import Generative
from restudy.methods.infilling.nets import Generator

IMAGES, AIM, SAME = 24, 5.0, 0.95
PENALTIES = (0.0005, 0.002)
SHARPNESS = 60.0
"""Factor on the untrained logits: without it no region is worth its price, and empty regions agree for nothing."""


def small_classifier() -> nn.Module:
    """Four convolutions for 28 x 28 pixels, as the study explains, untrained."""
    torch.manual_seed(0)
    head = nn.Linear(64, 6)
    net = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(24, 48, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(48, 64, 3, padding=1), nn.ReLU()),
        *(nn.AdaptiveMaxPool2d(1), nn.Flatten(), head),
    )
    with torch.no_grad():
        head.weight.mul_(SHARPNESS)
    net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return net.eval().requires_grad_(False)


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call."""
    started = time.process_time()
    run()
    return time.process_time() - started


def least_overlap(together: Tensor, alone: Tensor) -> float:
    """Smallest IoU of two sets of regions, bool (..., S, S); those that are empty in both do not count."""
    both = (together & alone).flatten(-2).sum(-1)
    either = (together | alone).flatten(-2).sum(-1)
    counted = either > 0
    return float((both[counted] / either[counted]).min()) if counted.any() else float("nan")


def compare(infiller: Infiller, settings: Settings) -> tuple[float, float, float, float]:
    """CPU seconds in a batch and in a loop over images and penalties, least IoU of the regions, their mean area."""
    model = small_classifier()
    images = torch.rand(IMAGES, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    target, seeds = model(images).argmax(1), list(range(IMAGES))

    def masks(index: slice, penalties: tuple[float, ...]) -> Masks:
        return fido(model, images[index], target[index], infiller, penalties, seeds[index], settings=settings)

    found: dict[str, Tensor] = {}

    def batch() -> None:
        found["batch"] = masks(slice(None), PENALTIES).theta(28)[:, :, 0] > 0.5

    def loop() -> None:
        alone = [[masks(slice(i, i + 1), (p,)).theta(28)[0, 0, 0] for i in range(IMAGES)] for p in PENALTIES]
        found["loop"] = torch.stack([torch.stack(row) for row in alone]) > 0.5

    masks(slice(0, 2), PENALTIES)  # warm up
    together, one_by_one = seconds(batch), seconds(loop)
    return together, one_by_one, least_overlap(found["batch"], found["loop"]), float(found["batch"].float().mean())


def rows() -> list[dict[str, object]]:
    """Rows for `make bench`."""
    torch.manual_seed(0)
    gan = Generative(Generator(24).eval().requires_grad_(False))
    found: list[dict[str, object]] = []
    cases: list[tuple[str, Infiller, int]] = [
        ("grey, 1 mask", Constant(0.4), 1),
        ("grey, 4 masks", Constant(0.4), 4),
        ("generative, 4 masks", gan, 4),
    ]
    for name, infiller, samples in cases:
        settings = Settings(14, 40, 0.375, samples)
        together, loop, least, area = compare(infiller, settings)
        note = f"{IMAGES} images x {len(PENALTIES)} penalties, {together:.2f} against {loop:.2f} s CPU; "
        note += f"least IoU of the regions {least:.3f}, wanted {SAME}; they take {area:.0%} of the image"
        what = f"FIDO one image and penalty at a time over all in a batch: {name}"
        found.append({"what": what, "ratio": loop / together, "aim": AIM, "note": note})
    return found
