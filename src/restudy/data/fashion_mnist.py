"""Fashion-MNIST: 70,000 grey photos of clothes, 28 x 28 pixels, ten classes of equal size."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from restudy.data.dataset import Dataset, File, ImageSet
from restudy.data.store import verified

DATASET = Dataset(
    name="fashion_mnist",
    summary="60,000 training and 10,000 test photos of clothes, grey, 28 x 28, ten balanced classes",
    files=(
        File(
            "train-images-idx3-ubyte",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            47_040_016,
        ),
        File(
            "train-labels-idx1-ubyte",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            60_008,
        ),
        File(
            "t10k-images-idx3-ubyte",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            7_840_016,
        ),
        File(
            "t10k-labels-idx1-ubyte",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            10_008,
        ),
    ),
    sources=(
        "deb:dataset-fashion-mnist=0.0~git20200523.55506a9-1",
        "url:https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    ),
    licence="MIT (Zalando SE)",
    citation="Xiao, Rasul, Vollgraf 2017: Fashion-MNIST, a novel image dataset for benchmarking "
    "machine learning algorithms (arXiv 1708.07747)",
    homepage="https://github.com/zalandoresearch/fashion-mnist",
    comparable_note="not comparable with accuracies on MNIST digits, CIFAR or ImageNet",
)

CLASSES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


def load(root: str | os.PathLike[str] | None = None) -> ImageSet:
    """Return the official split: images uint8 (60000, 28, 28) to train, (10000, 28, 28) to test, 0..255.

    Labels are int64, 0..9, indices into `CLASSES`. Raises DataError when the files are absent or altered.
    """
    paths = verified(DATASET, root)
    return ImageSet(
        train_images=_idx(paths["train-images-idx3-ubyte"]).reshape(60_000, 28, 28),
        train_labels=_idx(paths["train-labels-idx1-ubyte"]).astype(np.int64),
        test_images=_idx(paths["t10k-images-idx3-ubyte"]).reshape(10_000, 28, 28),
        test_labels=_idx(paths["t10k-labels-idx1-ubyte"]).astype(np.int64),
        classes=CLASSES,
    )


def _idx(path: Path) -> npt.NDArray[np.uint8]:
    """Return an IDX file without its header: 4 bytes, the last the number of axes, then 4 for each axis."""
    raw = path.read_bytes()
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3])
