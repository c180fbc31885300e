import copy

import pytest
import torch
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.models import MLP, Layer, SmallCNN, derive_seed, find_layer, layers_top_down
from restudy.methods.models.initializers import initialize_module, truncated_normal


def test_small_cnn_is_the_papers():
    net = SmallCNN(hidden=1024)
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert [layer.name for layer in layers_top_down(net)] == ["logits", "fc1", "conv2", "conv1"]
    assert net.conv1.weight.shape == (32, 1, 5, 5) and net.conv2.weight.shape == (64, 32, 5, 5)
    assert net.fc1.weight.shape == (1024, 3136)
    relus = [module for module in net.modules() if isinstance(module, nn.ReLU)]
    assert len({id(module) for module in relus}) == 3
    assert SmallCNN((4, 6), 8, 3, in_channels=3, kernel=3, image_size=32)(torch.zeros(1, 3, 32, 32)).shape == (1, 3)


def test_mlp_is_the_papers():
    net = MLP((784, 2500, 1500, 500, 10))
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert [layer.name for layer in layers_top_down(net)] == ["logits", "fc3", "fc2", "fc1"]
    assert net(torch.ones(1, 784)).shape == (1, 10)


@pytest.mark.parametrize("build", [SmallCNN, MLP])
def test_the_seed_determines_the_weights_and_nothing_else_does(build):
    state = torch.random.get_rng_state()
    torch.manual_seed(1)
    first = build(seed=3).state_dict()
    torch.manual_seed(2)
    second, other = build(seed=3).state_dict(), build(seed=4).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert all(not torch.equal(first[name], other[name]) for name in first)
    torch.random.set_rng_state(state)


def test_paper_initialiser():
    net = SmallCNN(init="paper")
    weight = net.fc1.weight
    assert bool((net.fc1.bias == 0.1).all()) and float(weight.detach().abs().max()) <= 0.2
    assert float(weight.std()) == pytest.approx(0.0880, abs=0.001)  # .1 cut at two standard deviations
    net = MLP((400, 300, 10), init="paper")
    assert float(net.fc1.weight.std()) == pytest.approx(0.1 * 0.880, abs=0.001)
    assert float(net.fc1.weight.abs().max()) <= 0.2 and not net.fc1.bias.any()


def test_torch_initialiser_is_torchs_own():
    net = SmallCNN()
    bound = 1 / 3136**0.5
    assert float(net.fc1.weight.abs().max()) == pytest.approx(bound, rel=0.01)
    assert float(net.fc1.weight.std()) == pytest.approx(bound / 3**0.5, rel=0.02)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 3)  # registered first, runs last
        self.norm = nn.BatchNorm2d(4)
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Conv2d(4, 8, 1)

    def forward(self, x):
        return self.fc(self.head(torch.relu(self.norm(self.stem(x)))).mean((2, 3)))


def test_any_model_by_order_of_execution():
    net = Residual().train()
    layers = layers_top_down(net, torch.zeros(1, 3, 8, 8))
    assert [layer.name for layer in layers] == ["fc", "head", "stem"]
    assert layers[-1].modules == ("stem", "norm")
    assert net.training and not net.norm.num_batches_tracked
    assert [layer.name for layer in layers_top_down(net)] == ["head", "stem", "fc"]


def test_parameters_without_initialiser_are_refused():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.scale = nn.Linear(2, 2), nn.Parameter(torch.ones(1))

    with pytest.raises(ConfigError, match="parameters without an initialiser: scale; give the model a method"):
        layers_top_down(Scaled())
    with pytest.raises(ConfigError, match="the model has none"):
        layers_top_down(nn.ReLU())
    with pytest.raises(ConfigError, match="layer 'fc9' is not in the model; layers: logits, fc1, conv2, conv1"):
        find_layer(SmallCNN(), "fc9")


def test_mistakes():
    with pytest.raises(ConfigError, match="kernel 4 is even"):
        SmallCNN(kernel=4)
    with pytest.raises(ConfigError, match="init 'he' is not known; allowed: torch, paper"):
        SmallCNN(init="he")
    with pytest.raises(ConfigError, match="name no layer"):
        MLP((3,))
    with pytest.raises(ConfigError, match="bn_policy 'none'"):
        initialize_module(nn.BatchNorm2d(2), truncated_normal(1, 0), 0, bn_policy="none")
    with pytest.raises(ConfigError, match="ReLU has no initialiser"):
        initialize_module(nn.ReLU(), Layer("x", ("x",)).initializer("x"), 0)


def test_initialising_keeps_format_dtype_and_random_state():
    net = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last).double()
    single = copy.deepcopy(net).float().to(memory_format=torch.contiguous_format)
    state = torch.random.get_rng_state()
    for module in (net, single):
        initialize_module(module, Layer("x", ("x",)).initializer("x"), 7)
    assert torch.equal(state, torch.random.get_rng_state())
    assert net.weight.dtype == torch.float64 and net.weight.is_contiguous(memory_format=torch.channels_last)


def test_derived_seeds_differ_and_stay():
    assert derive_seed(0, "a") == 7606779636460171844  # a change would change every result
    seeds = {derive_seed(seed, kind, name) for seed in range(20) for kind in "ab" for name in "cd"}
    assert len(seeds) == 80 and all(0 <= seed < 2**63 for seed in seeds)
