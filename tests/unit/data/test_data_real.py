"""Facts of the real data, counted in the files; skipped, with the reason, where no source can be reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from restudy.data import data_sum, fashion_mnist, fetch, imagenet_lite0, mnist5k, photos, stamps, synthetic
from restudy.data.dataset import ImageSet
from restudy.errors import DataError


@pytest.fixture(scope="session")
def need() -> Callable[[str], None]:
    """Fetch into the project's own data folder, once; skip where that cannot be done."""

    def fetched(name: str) -> None:
        try:
            fetch(name)
        except DataError as error:
            pytest.skip(f"real data not reachable: {error}")

    return fetched


def check_images(data: ImageSet, train: int, test: int, size: int = 28) -> None:
    assert data.train_images.shape == (train, size, size)
    assert data.test_images.shape == (test, size, size)
    for images, labels, count in (
        (data.train_images, data.train_labels, train),
        (data.test_images, data.test_labels, test),
    ):
        assert (images.dtype, labels.dtype, labels.shape) == (np.uint8, np.int64, (count,))
        assert not images.flags.writeable
        assert np.bincount(labels, minlength=10).tolist() == [count // 10] * 10
        assert (images.min(), images.max()) == (0, 255)
    assert len(data.classes) == 10


def test_fashion_mnist(need: Callable[[str], None]) -> None:
    need("fashion_mnist")
    data = fashion_mnist.load()
    check_images(data, 60_000, 10_000)
    assert data.train_images.mean() == pytest.approx(72.9404, abs=1e-4)
    assert data.test_images.mean() == pytest.approx(73.1466, abs=1e-4)
    assert data.train_labels[:10].tolist() == [9, 0, 0, 3, 0, 2, 7, 2, 5, 5]
    assert data.test_labels[:10].tolist() == [9, 2, 1, 1, 6, 1, 4, 6, 5, 7]


def test_mnist5k(need: Callable[[str], None]) -> None:
    need("mnist5k")
    data = mnist5k.load()
    check_images(data, 4000, 1000)
    pixels = np.concatenate([data.train_images, data.test_images])
    assert pixels.mean() == pytest.approx(33.4866, abs=1e-4)
    assert len(np.unique(pixels.reshape(5000, -1), axis=0)) == 5000  # so no digit is in both parts


def test_photos(need: Callable[[str], None]) -> None:
    need("photos")
    data = photos.load()
    assert tuple(data) == photos.COLOUR + photos.GREY
    for name, photo in data.items():
        assert photo.dtype == np.uint8
        assert photo.shape[2:] == ((3,) if name in photos.COLOUR else ())
        assert min(photo.shape[:2]) >= 300
        assert photo.std() > 10
    assert data["chelsea"].shape == (300, 451, 3)
    assert data["chelsea"].mean() == pytest.approx(115.31, abs=0.01)
    assert data["camera"].mean() == pytest.approx(129.06, abs=0.01)
    assert data["rocket"].mean() == pytest.approx(65.28, abs=0.5)  # a JPEG


def test_stamps(need: Callable[[str], None]) -> None:
    need("stamps")
    data = stamps.load()
    assert len(data) == 110
    assert len({stamp.tobytes() for stamp in data.values()}) == 110
    for stamp in data.values():
        assert stamp.dtype == np.uint8
        assert stamp.shape[2] == 4
        assert min(stamp.shape[:2]) >= 60
        shown = stamp[..., 3] >= 128
        assert shown[0].any() and shown[-1].any() and shown[:, 0].any() and shown[:, -1].any()
        assert 0.3 <= shown.mean() <= 0.97


def test_imagenet_lite0(need: Callable[[str], None]) -> None:
    need("imagenet_lite0")
    model = imagenet_lite0.load()
    assert len(model.classes) == 1000
    assert [model.classes[i] for i in (0, 285, 665, 967, 985)] == [
        *("tench", "Egyptian cat", "moped", "espresso", "daisy")
    ]
    torch = pytest.importorskip("torch")
    state = torch.load(model.weights, weights_only=True, map_location="cpu")
    counted = (value for name, value in state.items() if "running" not in name and "num_batches" not in name)
    assert sum(value.numel() for value in counted) == 4_652_008
    assert all(torch.isfinite(value).all() for value in state.values())


NAMES = (
    "fashion_mnist",
    "imagenet_lite0",
    "king_james",
    "mnist5k",
    "photos",
    "reina_valera",
    "stamps",
    "world_english",
)


@pytest.mark.parametrize("name", [*NAMES, "world_english"])
def test_fetched_from_nothing(name: str, tmp_path: Path) -> None:
    try:
        sums = fetch(name, tmp_path)
    except DataError as error:
        pytest.skip(f"no source reachable: {error}")
    assert {path.name for path in tmp_path.iterdir()} == {name, ".fetch"}
    assert sums.read_text().count("\n") == sum(path.is_file() for path in (tmp_path / name).rglob("*")) - 1
    assert len(data_sum(name)) == 64


def test_synthetic_images_are_repeatable_and_have_classes() -> None:
    data = synthetic.load(3, classes=10, per_class=30, test_per_class=10)
    again = synthetic.load(3, classes=10, per_class=30, test_per_class=10)
    assert data.train_images.tobytes() == again.train_images.tobytes()
    assert data.train_images.tobytes() != synthetic.load(4, per_class=30).train_images.tobytes()
    assert data.train_images.shape == (300, 28, 28)
    assert data.test_images.dtype == np.uint8
    assert np.bincount(data.train_labels).tolist() == [30] * 10
    train = data.train_images.reshape(300, -1).astype(float)
    test = data.test_images.reshape(100, -1).astype(float)
    nearest = ((test[:, None] - train[None]) ** 2).sum(-1).argmin(1)
    assert (data.train_labels[nearest] == data.test_labels).mean() > 0.95
