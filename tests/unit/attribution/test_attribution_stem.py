"""The own gradient of a first convolution equals autograd's, and steps aside where it does not fit."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from restudy.methods.attribution import attribute
from restudy.methods.attribution.passes import Forward
from restudy.methods.attribution.stem import find_stem


def plain_gradient(net, x, y):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(net(x).gather(1, y[:, None]).sum(), x)[0]


def net_with(first, relu=None):
    torch.manual_seed(0)
    with torch.no_grad():
        size = first(torch.zeros(1, 1, 9, 11)).numel()
    return nn.Sequential(first, relu or nn.ReLU(), nn.Flatten(), nn.Linear(size, 4)).double()


@pytest.mark.parametrize("kernel", [1, 2, 3, 5, (3, 2)])
@pytest.mark.parametrize("padding", [0, 1, 2, "same"])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_plain_convolutions(kernel, padding, memory_format):
    net = net_with(nn.Conv2d(1, 6, kernel, padding=padding)).to(memory_format=memory_format)
    x, y = torch.randn(3, 1, 9, 11, dtype=torch.float64), torch.tensor([0, 3, 1])
    torch.testing.assert_close(attribute(net, x, y, "gradient"), plain_gradient(net, x, y))


def found(net, x):
    forward = Forward(net, x, torch.zeros(len(x)).long())
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    return find_stem(Forward(net, x, torch.zeros(len(x)).long()).score, forward.leaf) is not None


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3, padding=1)

    def forward(self, x):
        return self.conv(x) + x


class Shifted(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, x):
        return self.conv(x * 2.0)


CASES = {
    "plain": (nn.Conv2d(1, 6, 3), True),
    "stride": (nn.Conv2d(1, 6, 3, stride=2), False),
    "dilation": (nn.Conv2d(1, 6, 3, dilation=2), False),
    "wide padding": (nn.Conv2d(1, 6, 3, padding=4), False),
    "circular": (nn.Conv2d(1, 6, 3, padding=1, padding_mode="circular"), False),
    "transposed": (nn.ConvTranspose2d(1, 6, 3), False),
    "scaled before": (Shifted(), False),
    "input used twice": (Twice(), False),
    "linear": (nn.Linear(11, 3), False),
}


@pytest.mark.parametrize("name", CASES)
def test_where_it_applies(name):
    first, applies = CASES[name]
    net = net_with(first)
    x, y = torch.randn(2, 1, 9, 11, dtype=torch.float64), torch.tensor([0, 2])
    torch.testing.assert_close(attribute(net, x, y, "gradient"), plain_gradient(net, x, y))
    assert found(net, x) == applies


def test_guided_rules_reach_it():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(140, 4))
    x, y = torch.randn(2, 1, 9, 11), torch.tensor([0, 2])
    three = nn.Sequential(nn.Conv2d(3, 5, 3), *net[1:])
    with torch.no_grad():
        three[0].weight.copy_(net[0].weight.repeat(1, 3, 1, 1))
        three[0].bias.copy_(net[0].bias)
    for method in ("guided_backprop", "deconvolution"):
        wide = F.pad(x, (0, 0, 0, 0, 0, 2))  # the first channel alone
        expected = attribute(three, wide, y, method)[:, :1]
        torch.testing.assert_close(attribute(net, x, y, method), expected, rtol=1e-4, atol=1e-6)
