"""Stage `check`: conservation and identities of relevance propagation in four small architectures, without training.

Networks without biases, random weights, float64: conservation is a property of the rules, not of what was learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import SmallCNN
from restudy.methods.relevance import attribute, conservation

from .experiment import Row, without_biases

TINY = 1e-12
"""Stabiliser of the identities, in float64: below every denominator that matters, above 0."""
RULES: dict[str, dict[str, float]] = {
    "lrp_epsilon": {"epsilon": TINY},
    "lrp_alpha_beta": {"stabilizer": TINY},
}
CANCELLED = 1e-8
"""What is left of a sum of about 1 whose terms nearly cancel."""


class Block(nn.Module):
    """Two convolutions with batch norm and a residual sum, as in a ResNet."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        """Map (N, C, H, W) to the same shape."""
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += x
        return F.relu(out)


def architectures() -> dict[str, nn.Module]:
    """A plain CNN, a VGG-like one, a ResNet-like one, and an inverted bottleneck with ReLU6; (N, 3, 32, 32) inputs."""
    torch.manual_seed(0)
    vgg = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)),
        *(nn.Flatten(), nn.Linear(16 * 8 * 8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 10)),
    )
    resnet = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.MaxPool2d(3, stride=2, padding=1), Block(8), Block(8)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)),
    )
    lite = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6()),
        *(nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6()),
        *(nn.Conv2d(24, 24, 3, padding=1, groups=24, bias=False), nn.BatchNorm2d(24), nn.ReLU6()),
        *(nn.Conv2d(24, 12, 1, bias=False), nn.BatchNorm2d(12), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(12 * 64, 10)),
    )
    cnn = SmallCNN((8, 12), 32, in_channels=3, image_size=32, seed=0)
    found: dict[str, nn.Module] = {"cnn": cnn, "vgg": vgg, "resnet": resnet, "lite": lite}
    return {name: without_biases(_random_gains(model)).double().eval() for name, model in found.items()}


def check(context: Context, *, images: int) -> Outputs:
    """Conservation, layer by layer and end to end, and the identity with gradient x input; returns `identities`."""
    rows: list[Row] = []
    generator = torch.Generator().manual_seed(0)
    inputs = torch.rand(images, 3, 32, 32, generator=generator, dtype=torch.float64)
    for name, model in architectures().items():
        with torch.no_grad():
            target = model(inputs).argmax(1)
        rows += [{"model": name} | row for row in conservation_rows(model, inputs, target)]
        relevance = attribute(model, inputs, target, "lrp_epsilon", epsilon=TINY)
        product = attribute(model, inputs, target, "gradient_x_input")
        if name != "lite":  # ReLU6 cuts off part of the activation, which no gradient carries
            gap = float((relevance - product).abs().max() / product.abs().max())
            rows.append({"model": name} | _row("I1", "lrp_epsilon", "all", "gradient_x_input", gap))
    rows += [{"model": "neuron"} | row for row in neuron_rows()]
    return {"identities": rows}


def conservation_rows(model: nn.Module, inputs: Tensor, target: Tensor) -> Iterator[Row]:
    """S7, S8: gaps of the epsilon rule, and of the alpha-beta rule where contributions of both signs meet."""
    for rule, options in RULES.items():
        found = conservation(model, inputs, target, rule, options)
        mixed = rule == "lrp_alpha_beta"
        gaps = found.layer_gaps(mixed=mixed).amax(1).tolist()
        for layer, (step, gap) in enumerate(zip(found.steps, gaps, strict=True)):
            yield _row("S8", rule, f"{layer} {step.operation}", "layer_gap", gap)
        yield _row("S7", rule, "all", "gap" if not mixed else "gap_with_one_sided", float(found.gap().max()))
        if mixed:
            yield _row("S8", rule, "all", "one_sided_share", float(found.one_sided_share().max()))


def neuron_rows() -> Iterator[Row]:
    """S9: a neuron whose inputs nearly cancel; relevance 1 arrives. Without a stabiliser its inputs get huge shares."""
    layer = nn.Conv2d(2, 1, 1, bias=False).double()
    x = torch.tensor([1.0, 1.0], dtype=torch.float64).view(1, 2, 1, 1)
    layer.weight.data = torch.tensor([1.0, CANCELLED - 1.0], dtype=torch.float64).view(1, 2, 1, 1)
    head = nn.Conv2d(1, 1, 1, bias=False).double()
    head.weight.data.fill_(1 / CANCELLED)
    model = nn.Sequential(layer, nn.ReLU(), head, nn.Flatten()).eval()
    target = torch.zeros(1, dtype=torch.int64)
    for epsilon in (0.0, 0.01):
        found = attribute(model, x, target, "lrp_epsilon", epsilon=epsilon)
        yield _row("S9", "lrp_epsilon", f"epsilon={epsilon:g}", "largest_share", float(found.abs().max()))


def _random_gains(model: nn.Module) -> nn.Module:
    """Batch norms with gains and variances of their own, means 0, so that without biases nothing is added."""
    generator = torch.Generator().manual_seed(1)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_var is not None
            module.weight.data.uniform_(0.5, 1.5, generator=generator)
            module.running_var.uniform_(0.2, 1.0, generator=generator)
    return model


def _row(claim: str, rule: str, case: str, metric: str, value: float) -> dict[str, Any]:
    return {"claim": claim, "rule": rule, "case": case, "metric": metric, "value": value, "unit": "1"}
