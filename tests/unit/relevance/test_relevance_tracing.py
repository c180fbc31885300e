"""However a model is written, the same relevance; what has no rule is refused by name; models come back unchanged."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from tests.unit.relevance.relevance_nets import ACTIVATIONS, SUMS, Residual, Vgg, inputs, seeded
from torch import nn

from restudy.errors import ConfigError
from restudy.methods import attribution, relevance
from restudy.methods.models.efficientnet import fold_batch_norms, load_lite0
from restudy.methods.relevance import NotApplicable, applicable, attribute, heatmaps

NEW = ("lrp_epsilon", "lrp_alpha_beta", "deconvolution_no_switches")
TARGET = torch.tensor([0, 4, 2])


def close(first, second, tolerance: float = 1e-5) -> bool:
    return float((first - second).abs().max()) <= tolerance * float(second.abs().max())


@pytest.mark.parametrize("method", NEW)
@pytest.mark.parametrize("spelling", ACTIVATIONS)
def test_spellings_of_rectifiers(method: str, spelling: str) -> None:
    plain, other = seeded(Vgg()), seeded(Vgg(ACTIVATIONS[spelling]))
    assert close(attribute(other, inputs(), TARGET, method), attribute(plain, inputs(), TARGET, method))


@pytest.mark.parametrize("method", ["lrp_epsilon", "lrp_alpha_beta"])
@pytest.mark.parametrize("spelling", SUMS)
def test_spellings_of_sums(method: str, spelling: str) -> None:
    plain, other = seeded(Residual()), seeded(Residual(SUMS[spelling]))
    assert close(attribute(other, inputs(), TARGET, method), attribute(plain, inputs(), TARGET, method))


@pytest.mark.parametrize("method", ["lrp_epsilon", "lrp_alpha_beta"])
def test_batch_norms_are_folded(method: str) -> None:
    model = seeded(Residual(six=True))
    assert close(
        attribute(model, inputs(), TARGET, method), attribute(fold_batch_norms(model), inputs(), TARGET, method)
    )


def test_a_batch_norm_of_its_own_is_a_scaling() -> None:
    class First(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn, self.conv = nn.BatchNorm2d(3), nn.Conv2d(3, 4, 3)

        def forward(self, x):
            return F.relu(self.conv(F.relu(self.bn(x)))).mean((2, 3))

    model = seeded(First()).double()
    x = inputs(3, torch.float64)
    gain = model.bn.weight / torch.sqrt(model.bn.running_var + model.bn.eps)
    twin = (
        nn.Sequential(
            nn.Conv2d(3, 3, 1, groups=3),
            nn.ReLU(),
            nn.Conv2d(3, 4, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        .double()
        .eval()
    )
    twin[0].weight.data = gain.detach().view(3, 1, 1, 1)
    twin[0].bias.data = (model.bn.bias - model.bn.running_mean * gain).detach()
    twin[2].load_state_dict(model.conv.state_dict())
    target = torch.tensor([0, 3, 2])
    for method in ("lrp_epsilon", "lrp_alpha_beta"):
        assert close(attribute(model, x, target, method), attribute(twin, x, target, method))


def test_without_switches_differs_by_the_pools_alone() -> None:
    class NoPool(nn.Module):
        def __init__(self, pool):
            super().__init__()
            self.conv1, self.conv2, self.pool = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 5, 3), pool

        def forward(self, x):
            return F.relu(self.conv2(self.pool(F.relu(self.conv1(x))))).mean((2, 3))

    plain = seeded(NoPool(nn.Identity()))
    assert close(
        attribute(plain, inputs(), TARGET, "deconvolution_no_switches"),
        attribute(plain, inputs(), TARGET, "deconvolution"),
    )
    pooled, averaged = seeded(NoPool(nn.MaxPool2d(2))), seeded(NoPool(nn.AvgPool2d(2)))
    assert not close(
        attribute(pooled, inputs(), TARGET, "deconvolution_no_switches"),
        attribute(pooled, inputs(), TARGET, "deconvolution"),
        0.1,
    )
    # Deconvolution looks at nothing but weights, so spreading evenly is what an average pool does.
    assert close(
        attribute(pooled, inputs(), TARGET, "deconvolution_no_switches"),
        attribute(averaged, inputs(), TARGET, "deconvolution"),
    )


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_batches_and_memory_formats_do_not_matter(layout) -> None:
    model = seeded(Residual())
    images = inputs(5).contiguous(memory_format=layout)
    target = torch.arange(5)
    whole = attribute(model, images, target, "lrp_alpha_beta")
    parts = attribute(model, images, target, "lrp_alpha_beta", batch_size=2)
    assert close(parts, whole)
    assert whole.shape == images.shape and whole.dtype == images.dtype


def test_lite0_without_weights() -> None:
    model = load_lite0(None)
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    for method in NEW:
        assert applicable(model, method, images) == (True, "")
        assert bool(torch.isfinite(attribute(model, images, torch.tensor([1, 2]), method)).all())


class Refused(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.conv, self.fc, self.how = nn.Conv2d(3, 4, 3), nn.Linear(4, 5), how

    def forward(self, x):
        return self.fc(self.how(self.conv(x)).mean((2, 3)))


def statement(x):
    x.relu_()
    return x


REFUSALS = {
    "silu": (F.silu, "silu"),
    "gelu": (nn.GELU(), "gelu"),
    "gate": (lambda x: x * torch.sigmoid(x), "sigmoid"),
    "square": (lambda x: x * x, "product"),
    "clamp": (lambda x: x.clamp(min=-1.0), "clamp"),
    "batch statistics": (nn.BatchNorm2d(4, track_running_stats=False), "batch"),
    "layer norm": (lambda x: F.layer_norm(x, x.shape[1:]), "layer_norm"),
    "in place": (statement, "in place"),
    "dropout": (lambda x: F.dropout(x, 0.5, training=True), "random"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_by_name(name: str) -> None:
    how, word = REFUSALS[name]
    model = seeded(Refused(how))
    with pytest.raises(NotApplicable, match=word):
        attribute(model, inputs(), TARGET, "lrp_epsilon")
    fine, why = applicable(model, "lrp_alpha_beta", inputs())
    assert not fine and word in why


def test_the_model_comes_back_unchanged() -> None:
    model = seeded(Residual()).train()
    model.conv1.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    flags = [p.requires_grad for p in model.parameters()]
    for method in NEW:
        attribute(model, inputs(), TARGET, method)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert [p.requires_grad for p in model.parameters()] == flags
    assert all(module.training for module in model.modules())
    assert all(p.grad is None for p in model.parameters())


def test_old_methods_are_delegated_and_their_registry_is_as_it_was() -> None:
    assert not set(NEW) & set(attribution.methods())
    assert set(relevance.methods()) == {*attribution.methods(), *NEW}
    model = seeded(Vgg())
    for method in ("gradient", "guided_backprop", "edges"):
        ours = attribute(model, inputs(), TARGET, method)
        assert torch.equal(ours, attribution.attribute(model, inputs(), TARGET, method))


def test_heatmaps_pool_as_they_say() -> None:
    model = seeded(Vgg())
    maps = heatmaps(model, inputs(), TARGET, ["sensitivity", "sensitivity_linf", "lrp_epsilon", "noise"])
    gradient = attribution.attribute(model, inputs(), TARGET, "gradient")
    assert torch.allclose(maps["sensitivity"], gradient.norm(dim=1))
    assert torch.allclose(maps["sensitivity_linf"], gradient.abs().amax(1))
    assert torch.allclose(maps["lrp_epsilon"], attribute(model, inputs(), TARGET, "lrp_epsilon").sum(1))
    assert maps["noise"].shape == (3, 12, 12)
    with pytest.raises(ConfigError, match="heatmap 'lrp' is not known"):
        heatmaps(model, inputs(), TARGET, ["lrp"])


def test_heatmaps_of_one_method_with_different_options() -> None:
    model = seeded(Vgg())
    wanted = {f"epsilon {e:g}": relevance.Heatmap("lrp_epsilon", "sum", {"epsilon": e}) for e in (0.01, 1.0)}
    maps = heatmaps(model, inputs(), TARGET, wanted)
    for name, how in wanted.items():
        assert torch.equal(maps[name], attribute(model, inputs(), TARGET, "lrp_epsilon", **how.options).sum(1))
    assert not torch.equal(maps["epsilon 0.01"], maps["epsilon 1"])
