"""Small nets for relevance propagation, and zennit's way to the same maps."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.peers import import_peer

SIZE = 12


def seeded(model: nn.Module, seed: int = 5) -> nn.Module:
    """Random weights and running statistics, evaluation mode."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype) * 0.3
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d) and module.track_running_stats:
            module.running_mean = torch.randn(module.num_features, generator=generator) * 0.3
            module.running_var = torch.rand(module.num_features, generator=generator) + 0.5
    return model.eval()


class Vgg(nn.Module):
    """Convolutions, overlapping and plain max-pools, average pool, two linear layers."""

    def __init__(self, activation: Any = None) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 8, 3, padding=1)
        self.act1, self.act2, self.act3 = (activation or nn.ReLU() for _ in range(3))
        self.pool1, self.pool2 = nn.MaxPool2d(3, stride=2, padding=1), nn.AvgPool2d(2)
        self.fc, self.out = nn.Linear(8 * 9, 7), nn.Linear(7, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool1(self.act1(self.conv1(x)))
        x = self.pool2(self.act2(self.conv2(x)))
        return self.out(self.act3(self.fc(x.flatten(1))))


class Residual(nn.Module):
    """Batch norms and a residual sum; `add` is how the sum is spelled."""

    def __init__(self, add: Any = None, six: bool = False) -> None:
        super().__init__()
        self.stem, self.bn0 = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv1, self.bn1 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.act0, self.act1, self.act2 = ((nn.ReLU6() if six else nn.ReLU()) for _ in range(3))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(2), nn.Linear(24, 5)
        self.add = add or (lambda a, b: a + b)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act0(self.bn0(self.stem(x)))
        y = self.bn2(self.conv2(self.act1(self.bn1(self.conv1(x)))))
        return self.fc(self.pool(self.act2(self.add(y, x))).flatten(1))


def added_in_place(a: Tensor, b: Tensor) -> Tensor:
    a += b
    return a


ACTIVATIONS = {
    "functional": F.relu,
    "torch": torch.relu,
    "tensor": lambda x: x.relu(),
    "in place": lambda x: F.relu(x, inplace=True),
    "module in place": nn.ReLU(inplace=True),
    "clamp": lambda x: x.clamp(min=0),
    "clamp_min": lambda x: torch.clamp_min(x, 0.0),
    "threshold": lambda x: F.threshold(x, 0.0, 0.0),
}
SUMS = {
    "plus": lambda a, b: a + b,
    "torch.add": torch.add,
    "in place": added_in_place,
    "method": lambda a, b: a.add(b),
    "minus minus": lambda a, b: a - b * -1.0,
}


def inputs(count: int = 3, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(count, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1)).to(dtype)


def zennit() -> None:
    """Make zennit importable, or skip with the reason."""
    if reason := import_peer("zennit")[1]:
        pytest.skip(reason)
