"""The networks and their integrands: a semi-supervised VAE with a discrete label, a digit to be found on a canvas."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.data import mnist5k

CLASSES, PIXELS = 10, 784
BACKGROUND = 0.01
"""Probability of a lit pixel outside the window that is looked at."""


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class LabelledVae(nn.Module):
    """VAE of Kingma et al. (2014, M2): classifier q(y|x), encoder q(z|x,y), decoder p(x|y,z), MLPs on binary pixels.

    The first layers of encoder and decoder take label and other input by weights of their own, which is the same as
    one layer on both side by side, and is computed once for all labels of an image.
    """

    def __init__(self, hidden: int, classifier: int, latent: int) -> None:
        super().__init__()
        self.classifier = mlp(PIXELS, classifier, classifier, classifier, CLASSES)
        self.encode_x, self.encode_y = nn.Linear(PIXELS, hidden), nn.Linear(CLASSES, hidden, bias=False)
        self.encode = mlp(hidden, hidden, 2 * latent)
        self.decode_z, self.decode_y = nn.Linear(latent, hidden), nn.Linear(CLASSES, hidden, bias=False)
        self.decode = mlp(hidden, hidden, PIXELS)
        self.baseline = mlp(PIXELS, 512, 512, 512, 1)
        self.latent = latent

    def log_q(self, x: Tensor) -> Tensor:
        """log q(y|x), (B, 10)."""
        return F.log_softmax(self.classifier(x), 1)


class Integrand:
    """f(y) = -E[log p(x|y,z)] + KL(q(z|x,y) || p(z)) in nats, one z drawn; the label's own KL is added exactly.

    Args:
        model: the networks.
        x: binary images (B, 784).
        noise: standard normal (B, latent), the same for every label of an image.
    """

    def __init__(self, model: LabelledVae, x: Tensor, noise: Tensor) -> None:
        self.model, self.x, self.noise = model, x, noise
        self.encoded = model.encode_x(x)

    def at(self, y: Tensor) -> Tensor:
        """Values (S, B) at labels (S, B)."""
        return self._value(self.model.encode_y.weight.T[y], self.model.decode_y.weight.T[y])

    def relaxed(self, weights: Tensor) -> Tensor:
        """Values (B,) at weights over the labels (B, 10)."""
        return self._value(self.model.encode_y(weights), self.model.decode_y(weights))

    def baseline(self) -> Tensor:
        """NVIL's prediction of f from the image, (B,)."""
        predicted: Tensor = self.model.baseline(self.x).squeeze(1) * 100.0
        return predicted

    def _value(self, encode_label: Tensor, decode_label: Tensor) -> Tensor:
        mean, log_variance = self.model.encode(F.relu(self.encoded + encode_label)).chunk(2, -1)
        z = mean + self.noise * (0.5 * log_variance).exp()
        logits = self.model.decode(F.relu(self.model.decode_z(z) + decode_label))
        target = self.x.expand(logits.shape)
        reconstruction = F.binary_cross_entropy_with_logits(logits, target, reduction="none").sum(-1)
        divergence: Tensor = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(-1)
        value: Tensor = reconstruction + divergence
        return value


def divergence_from_uniform(log_q: Tensor) -> Tensor:
    """KL(q || uniform) of the discrete variable in nats, (B,)."""
    return (log_q.exp() * log_q).sum(1) + math.log(log_q.shape[1])


def every_label(batch: int, classes: int = CLASSES) -> Tensor:
    """Labels 0..classes-1 for each image, int64 (classes, B)."""
    return torch.arange(classes)[:, None].expand(-1, batch)


@dataclass(frozen=True)
class Canvas:
    """Sides in pixels: of the canvas and of the digit; the window has the digit's size and lies inside."""

    side: int
    digit: int

    @property
    def places(self) -> int:
        """Places of the window along one side."""
        return self.side - self.digit + 1

    @property
    def categories(self) -> int:
        """K: all places."""
        return self.places**2


def digits(canvas: Canvas, count: int, *, test: bool) -> Tensor:
    """The first `count` digits of a mixed order, binary float32 (count, digit, digit), mean-pooled where 14 px."""
    data = mnist5k.load()
    images = data.test_images if test else data.train_images
    generator = torch.Generator().manual_seed(0)
    order = torch.randperm(len(images), generator=generator)[:count]
    grey = torch.from_numpy(images[order.numpy()]).float()[:, None] / 255
    return (F.avg_pool2d(grey, 28 // canvas.digit)[:, 0] > 0.4).float()


def place(canvas: Canvas, images: Tensor, places: Tensor) -> Tensor:
    """Digits (B, d, d) put on black canvases (B, side, side) at places (B,), counted row by row."""
    found = torch.zeros(len(images), canvas.side, canvas.side, device=images.device)
    rows, columns = places // canvas.places, places % canvas.places
    span = torch.arange(canvas.digit, device=images.device)
    batch = torch.arange(len(images), device=images.device)[:, None, None]
    found[batch, (rows[:, None] + span)[:, :, None], (columns[:, None] + span)[:, None, :]] = images
    return found


class AttendingVae(nn.Module):
    """Where: four 3x3 convolutions and a head give logits over the places. What: a VAE of the window, tanh.

    `head`: `linear`, the paper's fully connected layer from all features to all places, or `convolution` of the
    window's size, which knows that a digit looks the same everywhere.
    """

    def __init__(self, canvas: Canvas, *, channels: int, hidden: int, latent: int, head: str) -> None:
        super().__init__()
        c, pixels = channels, canvas.digit**2
        self.features = nn.Sequential(
            *(nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU()),
        )
        self.head: nn.Module = nn.Conv2d(c, 1, canvas.digit)
        if head == "linear":
            self.head = nn.Sequential(nn.Flatten(), nn.Linear(c * canvas.side**2, canvas.categories))
        self.encode = nn.Sequential(nn.Linear(pixels, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent))
        self.decode = nn.Sequential(nn.Linear(latent, hidden), nn.Tanh(), nn.Linear(hidden, pixels))
        self.baseline = nn.Sequential(
            nn.Flatten(), nn.Linear(canvas.side**2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )
        self.canvas, self.latent = canvas, latent

    def log_q(self, x: Tensor) -> Tensor:
        """log q(place|x), (B, K)."""
        return F.log_softmax(self.head(self.features(x[:, None])).flatten(1), 1)


class Looking:
    """f(place) = -E[log p(x|place,z)] + KL(q(z|window) || p(z)) in nats; one z drawn from the window at the place.

    Pixels inside the window follow the decoder, pixels outside are lit with probability `BACKGROUND`. The place's own
    KL is added exactly elsewhere.

    Args:
        model: the networks.
        x: canvases (B, side, side), binary.
        noise: standard normal (B, latent).
    """

    def __init__(self, model: AttendingVae, x: Tensor, noise: Tensor) -> None:
        self.model, self.x, self.noise = model, x, noise
        self.windows = x.unfold(1, model.canvas.digit, 1).unfold(2, model.canvas.digit, 1)
        self.dark = _background(x).sum((1, 2))

    def at(self, z: Tensor) -> Tensor:
        """Values (S, B) at places (S, B)."""
        n = self.model.canvas.places
        batch = torch.arange(len(self.x), device=z.device)
        window = self.windows[batch, z // n, z % n].flatten(2)
        logits, divergence = self._see(window)
        seen = F.binary_cross_entropy_with_logits(logits, window, reduction="none").sum(-1)
        return self.dark - _background(window).sum(-1) + seen + divergence

    def relaxed(self, weights: Tensor) -> Tensor:
        """Values (B,) at weights over the places (B, K): windows and what is drawn back are weighted sums."""
        c, b = self.model.canvas, len(self.x)
        kernel = weights.view(b, 1, c.places, c.places)
        window = F.conv2d(self.x.view(1, b, c.side, c.side), kernel, groups=b).view(b, -1)
        logits, divergence = self._see(window)
        drawn = torch.stack([logits.sigmoid(), torch.ones_like(logits)], 1).view(b, 2, c.digit, c.digit)
        both = F.conv_transpose2d(kernel.view(1, b, c.places, c.places), drawn, groups=b).view(b, 2, c.side, c.side)
        lit = (both[:, 0] + BACKGROUND * (1 - both[:, 1])).clamp(1e-6, 1 - 1e-6)
        return F.binary_cross_entropy(lit, self.x, reduction="none").sum((1, 2)) + divergence

    def baseline(self) -> Tensor:
        """NVIL's prediction of f from the canvas, (B,)."""
        predicted: Tensor = self.model.baseline(self.x).squeeze(1) * 100.0
        return predicted

    def reconstruction(self, places: Tensor) -> Tensor:
        """What the decoder draws at places (B,): canvases of probabilities (B, side, side)."""
        n = self.model.canvas.places
        batch = torch.arange(len(self.x), device=places.device)
        window = self.windows[batch, places // n, places % n].flatten(1)
        lit = self._see(window)[0].sigmoid().view(-1, self.model.canvas.digit, self.model.canvas.digit)
        return place(self.model.canvas, lit, places)

    def _see(self, window: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.model.encode(window).chunk(2, -1)
        z = mean + self.noise * (0.5 * log_variance).exp()
        divergence = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(-1)
        return self.model.decode(z), divergence


def _background(x: Tensor) -> Tensor:
    """Negative log likelihood of binary pixels under the background, nats each."""
    return -math.log1p(-BACKGROUND) + x * (math.log1p(-BACKGROUND) - math.log(BACKGROUND))


def near(canvas: Canvas, found: Tensor, truth: Tensor, within: int) -> Tensor:
    """Whether places lie within so many pixels of the truth in both directions, bool (B,)."""
    n = canvas.places
    rows, columns = (found // n - truth // n).abs(), (found % n - truth % n).abs()
    return (rows <= within) & (columns <= within)
