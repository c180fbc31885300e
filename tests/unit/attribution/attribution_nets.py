"""Small nets that compute the same thing in different spellings, with a twin that captum can read."""

import torch
import torch.nn.functional as F
from torch import nn

SIZE = 12


def seeded(model):
    generator = torch.Generator().manual_seed(5)
    for parameter in model.parameters():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.copy_(torch.randn(module.num_features, generator=generator) * 0.3)
            module.running_var.copy_(torch.rand(module.num_features, generator=generator) + 0.5)
    return model.eval()


class Plain(nn.Module):
    """Convolutional net; `relu` is the spelling of the activation, None for modules."""

    def __init__(self, relu=None, channels=3, inplace=False):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 8, 3, padding=1)
        self.fc = nn.Linear(8 * (SIZE // 2) ** 2, 7)
        self.out = nn.Linear(7, 5)
        self.relu = relu
        if relu is None:
            self.act1, self.act2, self.act3 = (nn.ReLU(inplace=inplace) for _ in range(3))
        else:
            self.act1 = self.act2 = self.act3 = relu

    def forward(self, x):
        x = self.act1(self.conv1(x))
        x = F.max_pool2d(self.act2(self.conv2(x)), 2)
        return self.out(self.act3(self.fc(x.flatten(1))))


class Residual(nn.Module):
    """Batch norm and skip connections, as in ResNet; distinct modules or one reused in-place ReLU."""

    def __init__(self, reuse=False):
        super().__init__()
        self.stem, self.bn0 = nn.Conv2d(3, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv1, self.bn1 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.conv2, self.bn2 = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(2), nn.Linear(24, 5)
        if reuse:
            self.act0 = self.act1 = self.act2 = nn.ReLU(inplace=True)
        else:
            self.act0, self.act1, self.act2 = nn.ReLU(), nn.ReLU(), nn.ReLU()

    def forward(self, x):
        x = self.act0(self.bn0(self.stem(x)))
        y = self.act1(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y = y + x
        return self.fc(self.pool(self.act2(y)).flatten(1))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.act1 = nn.Linear(3 * SIZE * SIZE, 20), nn.ReLU()
        self.fc2, self.act2 = nn.Linear(20, 10), nn.ReLU()
        self.out = nn.Linear(10, 5)

    def forward(self, x):
        return self.out(self.act2(self.fc2(self.act1(self.fc1(x.flatten(1))))))


SPELLINGS = {
    "functional": F.relu,
    "torch": torch.relu,
    "tensor": lambda x: x.relu(),
    "inplace_functional": lambda x: F.relu(x, inplace=True),
    "inplace_tensor": lambda x: x.relu_(),
    "reused_module": nn.ReLU(),
    "reused_inplace_module": nn.ReLU(inplace=True),
    "clamp": lambda x: x.clamp(min=0),
    "clamp_min": lambda x: x.clamp_min(0),
    "clamp_inplace": lambda x: x.clamp_(min=0),
    "clip": lambda x: torch.clip(x, 0),
}
SPELLINGS6 = {
    "module": nn.ReLU6(),
    "inplace_module": nn.ReLU6(inplace=True),
    "functional": F.relu6,
    "hardtanh": lambda x: F.hardtanh(x, 0.0, 6.0),
    "clamp": lambda x: x.clamp(0, 6),
}
CAPTUM_READABLE = {"plain": Plain, "residual": Residual, "perceptron": Perceptron}


def batch(number=3, channels=3, seed=1):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.rand(number, channels, SIZE, SIZE, generator=generator)
    target = torch.randint(0, 5, (number,), generator=generator)
    return inputs, target


def relative(ours, theirs):
    return float((ours - theirs).abs().max() / theirs.abs().max())
