import copy

import pytest
import torch
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.attribution import attribute, methods
from restudy.methods.models import MLP, SmallCNN, layers_top_down
from restudy.methods.randomization import cascade, independent, randomization_test, reinitialize


def net(seed=0):
    return SmallCNN((4, 6), 12, 5, image_size=12, seed=seed)


def batch():
    generator = torch.Generator().manual_seed(0)
    return torch.rand(3, 1, 12, 12, generator=generator), torch.tensor([0, 3, 4])


def changed(model, other):
    return [
        layer.name
        for layer in layers_top_down(model)
        if not torch.equal(model.get_submodule(layer.name).weight, other.get_submodule(layer.name).weight)
    ]


def test_cascade_both_orders():
    model = net()
    kept = copy.deepcopy(model.state_dict())
    seen = [(name, changed(state, model)) for name, state in cascade(model, seed=1)]
    assert seen == [
        ("logits", ["logits"]), ("fc1", ["logits", "fc1"]), ("conv2", ["logits", "fc1", "conv2"]),
        ("conv1", ["logits", "fc1", "conv2", "conv1"]),
    ]  # fmt: skip
    seen = [(name, changed(state, model)) for name, state in cascade(model, seed=1, order="bottom_up")]
    assert seen[:2] == [("conv1", ["conv1"]), ("conv2", ["conv2", "conv1"])]
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())


def test_independent_restores_the_others():
    model = net()
    seen = [(name, changed(state, model)) for name, state in independent(model, seed=1)]
    assert seen == [(name, [name]) for name in ("logits", "fc1", "conv2", "conv1")]


def test_draws_depend_on_seed_and_layer_only():
    model = net()
    down = dict(cascade(model, seed=1, copies=True))["conv1"]
    up = dict(cascade(model, seed=1, order="bottom_up", copies=True))["logits"]
    alone = dict(independent(model, seed=1, copies=True))
    for name, state in alone.items():
        assert torch.equal(state.get_submodule(name).weight, down.get_submodule(name).weight)
    assert not changed(down, up)
    assert len(changed(down, dict(cascade(model, seed=2, copies=True))["conv1"])) == 4


def test_two_equal_layers_get_different_numbers_and_not_those_of_the_build():
    model = MLP((8, 8, 8, 8), seed=5)
    reinitialize(model, "fc1", 5)
    reinitialize(model, "fc2", 5)
    fresh = MLP((8, 8, 8, 8), seed=5)
    assert not torch.equal(model.fc1.weight, model.fc2.weight)
    assert changed(model, fresh) == ["fc2", "fc1"]


@pytest.mark.parametrize("init", ["torch", "paper"])
def test_the_distribution_is_that_of_the_build(init):
    model = SmallCNN(init=init, seed=1)
    fresh = copy.deepcopy(model)
    with torch.no_grad():
        model.fc1.weight.zero_()
        model.fc1.bias.fill_(7.0)
    reinitialize(model, "fc1", 0)
    for ours, expected in ((model.fc1.weight, fresh.fc1.weight), (model.fc1.bias, fresh.fc1.bias)):
        assert float(ours.detach().mean()) == pytest.approx(float(expected.detach().mean()), abs=2e-3)
        assert float(ours.detach().abs().max()) == pytest.approx(float(expected.detach().abs().max()), rel=0.05)
        assert float(ours.detach().std()) == pytest.approx(float(expected.detach().std()), rel=0.1)


def test_batch_norm_policies_on_any_model():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(200, 5))
    with torch.no_grad():
        for value in (model[1].weight, model[1].bias, model[1].running_mean, model[1].running_var):
            value.fill_(3.0)
    for policy, expected in (("keep_stats", 3.0), ("reset_stats", 1.0)):
        name, state = list(cascade(model, seed=0, bn_policy=policy))[-1]
        assert name == "0" and state[1].weight.tolist() == [1, 1] and state[1].bias.tolist() == [0, 0]
        assert state[1].running_var.tolist() == [expected] * 2
    states = dict(independent(model, seed=0, bn_policy="reset_stats", copies=True))
    assert states["4"][1].running_var.tolist() == [3, 3] and states["0"][1].running_var.tolist() == [1, 1]


@pytest.mark.parametrize("order", ["top_down", "bottom_up", "independent"])
def test_the_test_gives_the_maps_of_each_state(order):
    model, (x, y) = net(), batch()
    options = {name: {} for name in methods()} | {
        "smoothgrad_ig": {"samples": 2, "steps": 3}, "smoothgrad": {"samples": 3}, "vargrad": {"samples": 3},
        "integrated_gradients": {"steps": 4},
    }  # fmt: skip
    states = list(randomization_test(model, x, y, options, order=order, seed=3, with_logits=True))
    plain = independent(model, seed=3) if order == "independent" else cascade(model, seed=3, order=order)
    expected = [("original", model), *plain] if order == "independent" else None
    assert [state.index for state in states] == [0, 1, 2, 3, 4]
    assert [state.layer for state in states[1:]] == [name for name, _ in (expected or [("", 0), *plain])[1:]]
    models = [model]
    again = (
        independent(model, seed=3, copies=True)
        if order == "independent"
        else cascade(model, seed=3, order=order, copies=True)
    )
    models += [state for _, state in again]
    for state, current in zip(states, models, strict=True):
        assert list(state.maps) == list(options)
        for name, given in options.items():
            assert torch.equal(state.maps[name], attribute(current, x, y, name, **given)), name
        with torch.no_grad():
            torch.testing.assert_close(state.logits, current(x))


def test_input_only_maps_never_change_and_the_class_stays():
    model, (x, y) = net(), batch()
    states = list(randomization_test(model, x, y, ["edges", "noise", "gradient"], seed=0))
    for state in states[1:]:
        assert torch.equal(state.maps["edges"], states[0].maps["edges"])
        assert torch.equal(state.maps["noise"], states[0].maps["noise"])
        assert not torch.equal(state.maps["gradient"], states[0].maps["gradient"])
    shorter = list(
        randomization_test(model, x, y, ["gradient"], seed=0, layers=layers_top_down(model)[:2], include_original=False)
    )
    assert [(state.index, state.layer) for state in shorter] == [(1, "logits"), (2, "fc1")]
    assert torch.equal(shorter[1].maps["gradient"], states[2].maps["gradient"])


def test_mistakes():
    model, (x, y) = net(), batch()
    with pytest.raises(ConfigError, match="order 'sideways' is not known; allowed: top_down, bottom_up"):
        list(cascade(model, seed=0, order="sideways"))
    with pytest.raises(ConfigError, match="allowed: top_down, bottom_up, independent"):
        list(randomization_test(model, x, y, ["edges"], seed=0, order="sideways"))
    with pytest.raises(ConfigError, match="layer 'fc7' is not in the model"):
        reinitialize(model, "fc7", 0)
