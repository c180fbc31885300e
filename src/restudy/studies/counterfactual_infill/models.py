"""Scenes with a known object, the classifier that is explained, and the nets of a seed as later stages take them up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from restudy.data import fashion_mnist, photos
from restudy.methods.infilling import Blur, Constant, Generative, Infiller, Known, Local, RandomColour, Regression
from restudy.methods.infilling.holes import rectangles
from restudy.methods.infilling.nets import ConditionalVae, Generator
from restudy.methods.models import derive_seed

NETS = ("classifier", "second", "vae", "gan", "judge")
TEXTURES = ("brick", "grass", "gravel")
GROUND_MEAN, GROUND_SPREAD = 0.35, 0.12
SILHOUETTE = 0.1
GAP = 16

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Scenes:
    """Scenes and what is known of them.

    `images` and `grounds` (the same scenes without their objects): float32 (N, 1, S, S) in [0, 1]; `objects`: bool
    (N, 1, S, S), the object's pixels; `labels`: int64 (N,); `corners`: int64 (N, 2), top and left of the square
    of side S / 2 that the object was pasted from.
    """

    images: Tensor
    grounds: Tensor
    objects: Tensor
    labels: Tensor
    corners: Tensor

    def __getitem__(self, index: Tensor) -> Scenes:
        return Scenes(*(part[index] for part in vars(self).values()))

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> Scenes:
        """Move the scenes to a device."""
        return Scenes(*(part.to(device) for part in vars(self).values()))

    def squares(self) -> Tensor:
        """Mark the square that holds the object, bool (N, 1, S, S); its shape says nothing of the class."""
        return rectangles(self.corners, self.images.shape[-1] // 2, self.images.shape[-1])


def make(part: str, count: int, canvas: int, classes: Sequence[int], seed: int, purpose: str) -> Scenes:
    """Draw scenes.

    Args:
        part: `train` or `test`: objects of that part of Fashion-MNIST on grounds cut from disjoint halves of the
            textures (16 pixels between them are left out).
        count: how many. canvas: side S in pixels, 28 or 56. classes: which of the ten; labels are places in this list.
        seed, purpose: determine the draw; different purposes are unrelated.
    """
    generator = np.random.default_rng(derive_seed(seed, part, purpose))
    objects, labels = _objects(part, canvas // 2)
    usable = np.flatnonzero(np.isin(labels, classes))
    chosen = usable[generator.integers(0, len(usable), count)]
    places = np.array([list(classes).index(label) for label in labels[chosen]], dtype=np.int64)
    grounds = _grounds(generator, part, count, canvas)
    corners = generator.integers(0, canvas // 2 + 1, (count, 2))
    images, masks = grounds.copy(), np.zeros((count, canvas, canvas), dtype=bool)
    side = canvas // 2
    for i, (top, left) in enumerate(corners):
        shown = objects[chosen[i]]
        place = np.s_[i, top : top + side, left : left + side]
        masks[place] = shown > SILHOUETTE
        images[place] = np.where(masks[place], 0.25 + 0.75 * shown, images[place])
    whole, behind, objects_of = (torch.from_numpy(array)[:, None] for array in (images, grounds, masks))
    return Scenes(whole, behind, objects_of, torch.from_numpy(places), torch.from_numpy(corners.astype(np.int64)))


@cache
def _objects(part: str, side: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Objects in [0, 1], float32 (N, side, side), by means over blocks of pixels; labels int64 (N,)."""
    data = fashion_mnist.load()
    images, labels = (data.train_images, data.train_labels) if part == "train" else (data.test_images, data.test_labels)
    block = images.shape[-1] // side
    small = images.reshape(len(images), side, block, side, block).mean((2, 4), dtype=np.float32) / np.float32(255)
    return small, labels


@cache
def _textures(part: str) -> tuple[Floats, ...]:
    """Half of each texture at half resolution, at a common mean and spread, clipped to [0, 1]."""
    found = []
    for name in TEXTURES:
        photo = photos.load()[name].astype(np.float32)
        rows, columns = (n // 2 * 2 for n in photo.shape)
        small = photo[:rows, :columns].reshape(rows // 2, 2, columns // 2, 2).mean((1, 3))
        scaled = GROUND_MEAN + GROUND_SPREAD * (small - small.mean()) / small.std()
        middle, half = small.shape[1] // 2, GAP // 2
        cut = scaled[:, : middle - half] if part == "train" else scaled[:, middle + half :]
        found.append(np.clip(cut, 0, 1).astype(np.float32))
    return tuple(found)


def _grounds(generator: np.random.Generator, part: str, count: int, canvas: int) -> Floats:
    """Float32 (count, canvas, canvas): crops of the textures, half of them mirrored."""
    textures = _textures(part)
    found = np.empty((count, canvas, canvas), dtype=np.float32)
    for i in range(count):
        texture = textures[generator.integers(len(textures))]
        top, left = (generator.integers(0, size - canvas + 1) for size in texture.shape)
        crop = texture[top : top + canvas, left : left + canvas]
        found[i] = crop[:, ::-1] if generator.random() < 0.5 else crop
    return found


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
        """Return the layer below the logits, (N, 8 * channels), not negative."""
        found: Tensor = self.body((inputs - 0.4) * 4.0)
        return found.amax((2, 3))

    def forward(self, inputs: Tensor) -> Tensor:
        """Map scenes (N, 1, S, S) to logits (N, classes)."""
        logits: Tensor = self.logits(self.features(inputs))
        return logits


def painter(name: str, channels: int) -> ConditionalVae | Generator:
    """Build an untrained generative in-filler."""
    return ConditionalVae(channels) if name == "vae" else Generator(channels)


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
        """Return an in-filler by name; `ground` is the scene without its object, `grounds` (N, 1, S, S)."""
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


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Choose the tensors whose names begin so, by the rest of their names."""
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def load_nets(weights: Mapping[str, Tensor], seed: int, device: str) -> Nets:
    """Restore the nets of a seed from the tensors of stage `train`; sizes are read off the shapes."""
    mine = under(weights, f"s{seed}/")
    classes = tuple(mine["classes"].tolist())
    built: dict[str, nn.Module] = {}
    for name in NETS:
        state = under(mine, f"{name}/")
        if name in ("classifier", "second"):
            built[name] = SceneCNN(len(classes), len(state["body.0.weight"]))
        else:
            built[name] = painter(name, len(state["surroundings.first.weight"]))
        built[name].load_state_dict(state)
        built[name].eval().requires_grad_(False).to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Nets(**built, canvas=int(mine["canvas"]), classes=classes, mean=float(mine["mean"]))  # type: ignore[arg-type]
