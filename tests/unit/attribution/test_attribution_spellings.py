"""The same net in any spelling of its ReLU gives the same answer, or a refusal; never another answer."""

import pytest
import torch
import torch.nn.functional as F
from tests.unit.attribution.attribution_nets import SPELLINGS, SPELLINGS6, Plain, Residual, batch, seeded
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.attribution import NotApplicable, applicable, attribute, attribute_many, methods

SMALL = {
    name: {key: value for key, value in {"samples": 3, "steps": 4}.items() if key in known}
    for name, known in ((n, {option.name for option in m.options}) for n, m in methods().items())
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_relu_gives_the_same(spelling):
    x, y = batch()
    expected = attribute_many(seeded(Plain()), x, y, SMALL)
    kept = x.clone()
    found = attribute_many(seeded(Plain(SPELLINGS[spelling])), x, y, SMALL)
    assert torch.equal(x, kept)
    for name in SMALL:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-7, msg=name)


@pytest.mark.parametrize("spelling", SPELLINGS6)
def test_every_spelling_of_relu6_gates_both_ends(spelling):
    x, y = batch()
    x = x * 8

    class Gate(nn.Module):  # relu6(z) = relu(z) - relu(z - 6), so the open part is what both twins share
        def forward(self, z):
            return torch.relu(z) * 1.0

    names = ["gradient", "guided_backprop", "deconvolution", "gradcam", "guided_gradcam"]
    reference = attribute_many(seeded(Plain(SPELLINGS6["module"])), x, y, names)
    unclamped = attribute_many(seeded(Plain(Gate())), x, y, names)
    assert not torch.allclose(reference["guided_backprop"], unclamped["guided_backprop"])
    found = attribute_many(seeded(Plain(SPELLINGS6[spelling])), x, y, names)
    for name in names:
        torch.testing.assert_close(found[name], reference[name], rtol=1e-5, atol=1e-7, msg=name)


def test_relu6_rule_by_hand():
    net = nn.Sequential(nn.Flatten(), nn.ReLU6(), nn.Linear(4, 1, bias=False))
    with torch.no_grad():
        net[2].weight.copy_(torch.tensor([[2.0, -3.0, 4.0, 5.0]]))
    x = torch.tensor([3.0, 3.0, 7.0, -1.0]).view(1, 1, 2, 2)
    y = torch.tensor([0])
    assert attribute(net, x, y, "gradient").flatten().tolist() == [2, -3, 0, 0]
    assert attribute(net, x, y, "guided_backprop").flatten().tolist() == [2, 0, 0, 0]
    assert attribute(net, x, y, "deconvolution").flatten().tolist() == [2, 0, 4, 5]


def test_guided_backprop_by_hand():
    # Two hidden units h = relu(W x), logit = v h. x = (1, 2): z = (1*1 - 1*2, 2*1 + 1*2) = (-1, 4).
    net = nn.Sequential(nn.Flatten(), nn.Linear(2, 2, bias=False), nn.ReLU(), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        net[1].weight.copy_(torch.tensor([[1.0, -1.0], [2.0, 1.0]]))
        net[3].weight.copy_(torch.tensor([[3.0, 5.0], [3.0, -5.0]]))
    x = torch.tensor([1.0, 2.0]).view(1, 1, 1, 2).repeat(2, 1, 1, 1)
    y = torch.tensor([0, 1])
    assert attribute(net, x, y, "gradient").flatten(1).tolist() == [[10, 5], [-10, -5]]
    assert attribute(net, x, y, "guided_backprop").flatten(1).tolist() == [[10, 5], [0, 0]]
    assert attribute(net, x, y, "deconvolution").flatten(1).tolist() == [[13, 2], [3, -3]]


def test_reused_inplace_relu_in_a_residual_net():
    x, y = batch()
    expected = attribute_many(seeded(Residual()), x, y, SMALL)
    found = attribute_many(seeded(Residual(reuse=True)), x, y, SMALL)
    for name in SMALL:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-5, atol=1e-7, msg=name)


def test_net_that_starts_with_an_inplace_operation():
    x, y = batch()
    net = nn.Sequential(nn.ReLU(inplace=True), seeded(Plain()))
    assert torch.equal(attribute(net, x, y, "gradient"), attribute(net[1], x, y, "gradient"))


class Disguised(nn.Module):
    def forward(self, x):
        return x * (x > 0)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.full((1, 1, 1, 1), 0.5))

    def forward(self, x):
        return torch.relu((x - self.mean) * 2.0 / self.mean) if x.dim() == 4 else torch.relu(x)


@pytest.mark.parametrize(
    ("activation", "named"),
    [
        (F.silu, "Silu"), (F.gelu, "Gelu"), (torch.tanh, "Tanh"), (torch.sigmoid, "Sigmoid"),
        (F.leaky_relu, "LeakyRelu"), (F.elu, "Elu"), (F.hardtanh, "Hardtanh"), (F.hardswish, "Hardswish"),
        (F.softplus, "Softplus"), (lambda x: x.clamp(-1, 1), "Clamp"), (Disguised(), "Mul"),
        (lambda x: torch.where(x > 0, x, 0), "Where"), (lambda x: x.masked_fill(x < 0, 0), "MaskedFill"),
        (lambda x: torch.maximum(x, torch.zeros_like(x)), "Maximum"), (lambda x: x * torch.sigmoid(x), "Sigmoid"),
        (lambda x: x / (1 + x.abs()), "Abs"), (lambda x: x / (x * x + 1).detach(), "Div"), (torch.abs, "Abs"),
    ],
)  # fmt: skip
def test_other_nonlinearities_are_refused_with_the_reason(activation, named):
    net, (x, y) = seeded(Plain(activation)), batch()
    for method in ("guided_backprop", "deconvolution", "guided_gradcam"):
        with pytest.raises(NotApplicable, match=f"no rule for the operation .*{named}"):
            attribute(net, x, y, method)
        fine, reason = applicable(net, method, x)
        assert not fine and named in reason
    assert attribute(net, x, y, "gradient").shape == x.shape


def test_linear_preprocessing_is_not_refused():
    net, (x, y) = seeded(Plain(Scaled())), batch()
    assert applicable(net, "guided_backprop", x) == (True, "")
    assert attribute(net, x, y, "guided_backprop").abs().max() > 0


def test_attention_and_squeeze_excitation_are_refused():
    class Gated(Plain):
        def forward(self, x):
            x = torch.relu(self.conv1(x))
            return self.out(torch.relu(self.fc((self.conv2(x) * x.mean())[:, :, ::2, ::2].flatten(1))))

    x, y = batch()
    with pytest.raises(NotApplicable, match="Mul"):
        attribute(seeded(Gated()), x, y, "guided_backprop")


def test_modules_are_enough_to_refuse():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), nn.Flatten(), nn.Linear(400, 5))
    assert applicable(net, "guided_backprop") == (False, "no rule for 1 (SiLU)")
    assert applicable(net, "gradcam") == (True, "")
    assert applicable(nn.Sequential(nn.Flatten(), nn.Linear(432, 5)), "gradcam") == (
        False,
        "the model has no convolution",
    )


class TestGradCamLayer:
    def test_default_is_the_activation_after_pooling_or_norm(self):
        x, y = batch()

        class Pooled(Plain):
            def forward(self, x):
                x = F.relu(self.conv1(x))
                x = F.relu(F.max_pool2d(self.conv2(x), 2))
                return self.out(torch.relu(self.fc(x.flatten(1))))

        # ReLU and max-pooling commute, so the same maps at the pooled size.
        net = seeded(Pooled())
        low = attribute(net, x, y, "gradcam", resize="nearest")
        assert torch.equal(low[..., ::2, ::2], low[..., 1::2, 1::2])

    def test_inplace_activation_does_not_spoil_a_named_convolution(self):
        x, y = batch()
        plain = attribute(seeded(Plain()), x, y, "gradcam", layer="conv2")
        inplace = attribute(seeded(Plain(inplace=True)), x, y, "gradcam", layer="conv2")
        assert torch.equal(plain, inplace)
        assert not torch.equal(plain, attribute(seeded(Plain()), x, y, "gradcam", layer="act2"))

    def test_refusals(self):
        x, y = batch()
        with pytest.raises(ConfigError, match="layer 'nothing' is not in the model; modules: .*conv2"):
            attribute(seeded(Plain()), x, y, "gradcam", layer="nothing")
        with pytest.raises(NotApplicable, match="runs 3 times in one pass; name a layer that runs once"):
            attribute(seeded(Plain(nn.ReLU())), x, y, "gradcam", layer="act1")
        with pytest.raises(NotApplicable, match=r"\(3, 7\), not \(N, K, h, w\)"):
            attribute(seeded(Plain()), x, y, "gradcam", layer="act3")
        with pytest.raises(NotApplicable, match="no ReLU follows the last convolution; name the module"):
            attribute(seeded(Plain(F.silu)), x, y, "gradcam")
        assert attribute(seeded(Plain(nn.SiLU())), x, y, "gradcam", layer="conv2").abs().max() > 0
