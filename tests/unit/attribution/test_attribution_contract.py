"""What every method promises: shape, dtype, determinism, and a model that comes back untouched."""

import copy

import numpy as np
import pytest
import skimage.filters
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.attribution.attribution_nets import Perceptron, Plain, Residual, batch, seeded
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.attribution import NotApplicable, attribute, attribute_many, get_method, input_only, methods

NAMES = list(methods())
SMALL = {
    name: {option.name: {"samples": 3, "steps": 4}[option.name] for option in method.options if option.minimum == 1}
    for name, method in methods().items()
}


def test_the_methods_are_those_of_the_paper_and_two_controls():
    assert NAMES == [
        "gradient", "gradient_x_input", "integrated_gradients", "smoothgrad", "smoothgrad_ig", "vargrad",
        "guided_backprop", "deconvolution", "gradcam", "guided_gradcam", "noise", "edges",
    ]  # fmt: skip
    assert [name for name in NAMES if input_only(name)] == ["noise", "edges"]
    assert [name for name in NAMES if not methods()[name].signed] == ["vargrad", "gradcam", "edges"]
    assert get_method("smoothgrad_ig").passes({"samples": 4, "steps": 8}) == 32


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shape_dtype_and_sign(name, dtype):
    x, y = batch()
    found = attribute(seeded(Residual()).to(dtype), x.to(dtype), y, name, **SMALL[name])
    assert found.shape == x.shape and found.dtype == dtype
    assert found.is_contiguous() and not found.requires_grad and bool(torch.isfinite(found).all())
    assert found.abs().max() > 0
    if not methods()[name].signed:
        assert found.min() >= 0


@pytest.mark.parametrize("name", NAMES)
def test_model_comes_back_untouched(name):
    x, y = batch()
    net = seeded(Residual(reuse=True)).train()
    net.dropout = nn.Dropout(0.5)
    net.bn1.eval()
    net.conv1.weight.requires_grad_(False)
    net.fc.weight.grad = torch.ones_like(net.fc.weight)
    calls = []
    net.conv1.register_forward_hook(lambda *_: calls.append(1))
    before = copy.deepcopy(net)
    state = torch.random.get_rng_state()
    kept = x.clone()
    attribute(net, x, y, name, **SMALL[name])
    assert torch.equal(state, torch.random.get_rng_state()) and torch.equal(x, kept) and not x.requires_grad
    assert [m.training for m in net.modules()] == [m.training for m in before.modules()]
    assert [p.requires_grad for p in net.parameters()] == [p.requires_grad for p in before.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), before.state_dict().values(), strict=True))
    assert bool((net.fc.weight.grad == 1).all()) and net.conv2.weight.grad is None
    assert [len(m._forward_hooks) for m in net.modules()] == [len(m._forward_hooks) for m in before.modules()]
    assert calls or input_only(name)


def test_training_mode_is_answered_in_evaluation_mode_and_errors_restore_it():
    x, y = batch()
    net = seeded(Residual())
    expected = attribute(net, x, y, "gradient")
    assert torch.equal(attribute(net.train(), x, y, "gradient"), expected) and net.training
    with pytest.raises(ConfigError):
        attribute(net, x, y + 5, "gradient")
    assert net.training and all(p.requires_grad for p in net.parameters())


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_values_at_any_batch_size(name):
    x, y = batch(5)
    net = seeded(Plain()).double()
    x = x.double()
    first = attribute(net, x, y, name, **SMALL[name])
    assert torch.equal(first, attribute(net, x, y, name, **SMALL[name]))
    for batch_size in (1, 4):
        again = attribute(net, x, y, name, batch_size=batch_size, **SMALL[name])
        torch.testing.assert_close(again, first, rtol=1e-9, atol=1e-12)
    if methods()[name].random:
        other = attribute(net, x, y, name, seed=1, **SMALL[name])
        assert not torch.allclose(other, first)
        drawn = attribute(net, x, y, name, generator=torch.Generator().manual_seed(0), **SMALL[name])
        assert torch.equal(drawn, first)


def test_many_equals_one_by_one():
    x, y = batch()
    net = seeded(Plain())
    together = attribute_many(net, x, y, SMALL)
    assert list(together) == NAMES
    for name in NAMES:
        assert torch.equal(together[name], attribute(net, x, y, name, **SMALL[name])), name


def test_methods_share_their_passes():
    x, y = batch(2)
    net = seeded(Plain())
    passes = []
    net.register_forward_hook(lambda module, inputs, output: passes.append(len(output)))
    attribute_many(net, x, y, ["gradient", "gradient_x_input"])
    assert sum(passes) == 2
    passes.clear()
    attribute_many(net, x, y, {"smoothgrad": {"samples": 6}, "vargrad": {"samples": 6}})
    assert sum(passes) == 12
    passes.clear()
    attribute_many(net, x, y, ["guided_backprop", "gradcam", "guided_gradcam"])
    assert sum(passes) == 4


@pytest.mark.parametrize("net", [Plain(), Residual(), Perceptron()], ids=["plain", "residual", "perceptron"])
@pytest.mark.parametrize("rule", ["riemann_middle", "gausslegendre"])
def test_integrated_gradients_are_complete_within_one_percent(net, rule):
    net, (x, y) = seeded(net), batch(8)
    found = attribute(net, x, y, "integrated_gradients", steps=200, quadrature=rule)
    with torch.no_grad():
        change = (net(x) - net(torch.zeros_like(x))).gather(1, y[:, None])[:, 0]
    gap = (found.sum((1, 2, 3)) - change).abs() / change.abs().max()
    assert gap.max() <= 0.01


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 1000), st.floats(0.2, 3.0))
def test_linear_model_identities(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3)).double()
    x = torch.randn(2, 3, 2, 2, generator=generator, dtype=torch.float64) * scale
    y = torch.randint(0, 3, (2,), generator=generator)
    gradient = net[1].weight.detach()[y].view(x.shape)
    for name in ("gradient", "guided_backprop", "deconvolution", "smoothgrad"):
        torch.testing.assert_close(attribute(net, x, y, name, **SMALL[name]), gradient)
    for name in ("gradient_x_input", "integrated_gradients"):
        torch.testing.assert_close(attribute(net, x, y, name, **SMALL[name]), x * gradient)
    assert attribute(net, x, y, "vargrad", samples=3).abs().max() < 1e-25


def test_noise_scale_follows_the_range_of_each_image():
    seen = []

    class Spy(nn.Module):
        def forward(self, x):
            seen.append(x.detach())
            return x.flatten(1)[:, :2] * 1.0

    x = torch.stack([torch.linspace(0, 1, 3072), torch.linspace(0, 10, 3072)]).view(2, 3, 32, 32)
    attribute(Spy(), x, torch.zeros(2).long(), "smoothgrad", samples=8)
    spread = (torch.cat(seen).view(8, *x.shape) - x).std((0, 2, 3, 4))
    torch.testing.assert_close(spread, torch.tensor([0.15, 1.5]), rtol=0.03, atol=0)
    seen.clear()
    attribute(Spy(), x, torch.zeros(2).long(), "smoothgrad", samples=8, stdev=0.5)
    spread = (torch.cat(seen).view(8, *x.shape) - x).std((0, 2, 3, 4))
    torch.testing.assert_close(spread, torch.tensor([0.5, 0.5]), rtol=0.03, atol=0)


def test_edges_are_those_of_scikit_image():
    x, y = batch()
    found = attribute(seeded(Plain()), x, y, "edges")
    expected = np.stack([[skimage.filters.sobel(channel) for channel in image] for image in x.numpy()])
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_channels_last_models_give_the_same():
    x, y = batch()
    net = seeded(Plain())
    expected = attribute_many(net, x, y, SMALL)
    found = attribute_many(net.to(memory_format=torch.channels_last), x, y, SMALL)
    for name in NAMES:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=1e-6, msg=name)


def test_works_within_no_grad_and_inference_mode():
    x, y = batch()
    net = seeded(Plain())
    expected = attribute(net, x, y, "guided_gradcam")
    with torch.no_grad():
        assert torch.equal(attribute(net, x, y, "guided_gradcam"), expected)
    with torch.inference_mode():
        assert torch.equal(attribute(net, x.clone(), y.clone(), "guided_gradcam"), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "saliency"}, "method 'saliency' is not known; methods: gradient"),
        ({"steps": 3}, "gradient: option 'steps' is not known; allowed: batch_size"),
        ({"method": "smoothgrad", "samples": 0}, "smoothgrad: samples is 0; allowed: int, at least 1"),
        ({"method": "smoothgrad", "samples": True}, "samples is True"),
        ({"method": "smoothgrad", "spread": float("nan")}, "spread is nan"),
        ({"method": "smoothgrad", "noise": torch.zeros(2, 2)}, r"noise has shape \(2, 2\)"),
        ({"method": "integrated_gradients", "quadrature": "simpson"}, "allowed: riemann_middle, gausslegendre"),
        ({"method": "integrated_gradients", "baseline": torch.zeros(7)}, r"baseline has shape \(7,\)"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"target": torch.tensor([0, 1, 9])}, "target holds 0 to 9; the model has classes 0 to 4"),
        ({"target": torch.tensor([0, 1, -1])}, "target holds -1 to 1"),
        ({"target": torch.tensor([0, 1])}, r"give one class for each input: int64 \(3,\)"),
        ({"target": torch.tensor([0.0, 1, 1])}, "dtype torch.float32"),
        ({"inputs": torch.zeros(3, 12, 12)}, r"inputs have shape \(3, 12, 12\)"),
        ({"inputs": torch.full((3, 3, 12, 12), float("inf"))}, "not finite"),
        ({"inputs": torch.zeros(3, 3, 12, 12).double()}, "inputs: torch.float64 on cpu, model: torch.float32"),
        ({"model": nn.Conv2d(3, 4, 3)}, r"the model returns \(3, 4, 10, 10\)"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_one_line(change, message):
    x, y = batch()
    call = {"model": seeded(Plain()), "inputs": x, "target": y, "method": "gradient", **change}
    with pytest.raises(ConfigError, match=message) as caught:
        attribute(**call)
    assert "\n" not in str(caught.value)


def test_models_that_mix_examples_or_cut_the_gradient_are_refused():
    x, y = batch()
    mixing = nn.Sequential(nn.BatchNorm2d(3, track_running_stats=False), seeded(Plain()))
    with pytest.raises(NotApplicable, match="0 normalises by the batch"):
        attribute(mixing, x, y, "gradient")

    class Cut(Plain):
        def forward(self, x):
            return super().forward(x.detach())

    with pytest.raises(NotApplicable, match="do not depend on the inputs"):
        attribute(seeded(Cut()), x, y, "gradient")
