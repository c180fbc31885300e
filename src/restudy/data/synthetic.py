"""Made-up images for unit tests: a stand-in with the shape of real data; no preset may use it.

It declares no `DATASET`, so it is neither listed nor fetched, and a study.yaml cannot name it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from restudy.data.dataset import ImageSet


def load(seed: int = 0, *, classes: int = 10, per_class: int = 20, test_per_class: int = 5, size: int = 28) -> ImageSet:
    """Return images that a small model learns in seconds: a pattern per class, shifted, dimmed, with noise.

    Train images uint8 (classes * per_class, size, size), test images with `test_per_class`, values 0..255,
    labels int64 in shuffled order. The same arguments give the same bytes. The pattern of a class depends on
    `seed` and `size`, not on how many images are drawn.
    """
    patterns = _patterns(np.random.default_rng([seed, 0]), classes, size)
    train = _draw(np.random.default_rng([seed, 1]), patterns, per_class)
    test = _draw(np.random.default_rng([seed, 2]), patterns, test_per_class)
    return ImageSet(*train, *test, classes=tuple(f"class {label}" for label in range(classes)))


def _patterns(rng: np.random.Generator, classes: int, size: int) -> npt.NDArray[np.float64]:
    """One sum of three plane waves per class, inside a soft disc, values 0..1."""
    y, x = np.mgrid[0:size, 0:size] / size - 0.5
    waves = rng.uniform(-3.0, 3.0, (classes, 3, 2)), rng.uniform(0.0, 2 * np.pi, (classes, 3))
    angle = waves[0][..., 0, None, None] * x + waves[0][..., 1, None, None] * y
    pattern = np.sin(2 * np.pi * angle + waves[1][..., None, None]).sum(axis=1)
    disc = np.exp(-(((x**2 + y**2) / 0.15) ** 2))
    shown: npt.NDArray[np.float64] = np.clip((pattern / 3 + 1) / 2 * disc, 0.0, 1.0)
    return shown


def _draw(
    rng: np.random.Generator, patterns: npt.NDArray[np.float64], per_class: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    labels = rng.permutation(np.repeat(np.arange(len(patterns)), per_class)).astype(np.int64)
    images = np.empty((len(labels), *patterns.shape[1:]), dtype=np.uint8)
    for index, label in enumerate(labels):
        moved = np.roll(patterns[label], rng.integers(-2, 3, 2), axis=(0, 1)) * rng.uniform(0.7, 1.0)
        images[index] = np.clip(255 * moved + rng.normal(0.0, 12.0, moved.shape), 0, 255).astype(np.uint8)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels
