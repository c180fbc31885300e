"""The semi-supervised VAE (Kingma et al. 2014, M2) with a discrete label, and its integrand."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CLASSES, PIXELS = 10, 784


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in zip(sizes, sizes[1:], strict=False):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class LabelledVae(nn.Module):
    """Classifier q(y|x), encoder q(z|x,y), decoder p(x|y,z): MLPs with ReLU on 784 binary pixels.

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


def label_divergence(log_q: Tensor) -> Tensor:
    """KL(q(y|x) || uniform) in nats, (B,)."""
    return (log_q.exp() * log_q).sum(1) + math.log(log_q.shape[1])


def every_label(batch: int, classes: int = CLASSES) -> Tensor:
    """Labels 0..classes-1 for each image, int64 (classes, B)."""
    return torch.arange(classes)[:, None].expand(-1, batch)
