"""Relevance rules against their definition with autograd's Jacobian, and conservation through a whole model."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.heads import head_relevance
from restudy.methods.heads.relevance import add_relevance, attention_relevance, linear_relevance, norm_relevance
from restudy.methods.transformer import Shape, Transformer

torch.set_num_threads(1)


def rule(function: Callable[[Tensor], Tensor], x: Tensor, relevance: Tensor, bias: Tensor | None = None) -> Tensor:
    """R_i = sum_j R_j (z+/2 sum z+ + z-/2 sum z-) with z = J x + b / n, written with loops."""
    jacobian = torch.autograd.functional.jacobian(function, x)
    found = torch.zeros_like(x)
    for j, r in enumerate(relevance):
        z = jacobian[j] * x + (0 if bias is None else bias[j] / len(x))
        for part in (z.clamp_min(0), z.clamp_max(0)):
            if float(part.sum()) != 0:
                found += 0.5 * r * part / part.sum()
    return found


def test_linear_with_and_without_bias() -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(6).double(), torch.randn(4, 6).double(), torch.randn(4).double()
    relevance = torch.rand(4).double()
    for offset in (None, bias):
        expected = rule(lambda v: weight @ v, x, relevance, offset)
        torch.testing.assert_close(linear_relevance(x, weight, offset, relevance), expected, atol=1e-7, rtol=0)


def test_layer_norm_with_its_jacobian() -> None:
    torch.manual_seed(1)
    norm = nn.LayerNorm(5).double()
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, relevance = torch.randn(5).double(), torch.rand(5).double()
    expected = rule(lambda v: norm(v), x, relevance, norm.bias.detach())
    found = norm_relevance(x.view(1, 1, 5), norm, relevance.view(1, 1, 5)).flatten().detach()
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=0)


def test_attention_in_two_steps() -> None:
    torch.manual_seed(2)
    q, k, v = (torch.randn(1, 1, t, 3).double() for t in (2, 4, 4))
    logits = q @ k.transpose(2, 3) * 3**-0.5
    weights, relevance = torch.softmax(logits, 3), torch.rand(1, 1, 2, 3).double()

    def attend(flat: Tensor) -> Tensor:
        values, scores = flat[:12].view(1, 1, 4, 3), flat[12:].view(1, 1, 2, 4)
        return (torch.softmax(scores, 3) @ values).flatten()

    first = rule(attend, torch.cat([v.flatten(), logits.flatten()]), relevance.flatten())
    to_q, to_k, to_v = attention_relevance(q, k, v, weights, relevance)
    torch.testing.assert_close(to_v.flatten(), first[:12], atol=1e-7, rtol=0)
    products = rule(
        lambda flat: (flat.view(2, 4, 3).sum(2) * 3**-0.5).flatten(),
        (q.unsqueeze(3) * k.unsqueeze(2)).flatten(), first[12:],
    ).view(2, 4, 3)  # fmt: skip
    torch.testing.assert_close(to_q.view(2, 3), products.sum(1) / 2, atol=1e-7, rtol=0)
    torch.testing.assert_close(to_k.view(4, 3), products.sum(0) / 2, atol=1e-7, rtol=0)


def test_sum_of_branches() -> None:
    one, two = torch.tensor([3.0, -1.0, 2.0]), torch.tensor([1.0, -1.0, -2.0])
    a, b = add_relevance(one, two, torch.ones(3))
    torch.testing.assert_close(a, torch.tensor([0.375, 0.25, 0.5]), atol=1e-6, rtol=0)
    torch.testing.assert_close(b, torch.tensor([0.125, 0.25, 0.5]), atol=1e-6, rtol=0)


@pytest.mark.parametrize("distance", [None, 3])
def test_total_relevance_is_conserved_down_to_the_first_layer(distance: int | None) -> None:
    torch.manual_seed(3)
    model = Transformer(Shape(20, 22, 32, 4, 48, 3, 2, max_distance=distance)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    source, prefix = torch.randint(3, 20, (4, 9)), torch.randint(3, 22, (4, 6))
    source[1, 5:] = 0
    prefix[2, 4:] = 0
    found = head_relevance(model, source, prefix)
    assert len(found.totals) == 6
    assert found.totals["logits"].tolist() == pytest.approx([6, 6, 4, 6])
    for name, total in found.totals.items():
        torch.testing.assert_close(total, found.totals["logits"], atol=1e-4, rtol=1e-4, msg=name)
    for kind, layers in {"encoder": 3, "decoder": 2, "cross": 2}.items():
        assert len(found.heads[kind]) == layers
        for shares in found.heads[kind].values():
            assert float(shares.min()) >= 0 and shares.sum(1).tolist() == pytest.approx([1.0] * 4)


def test_a_head_without_output_has_no_relevance() -> None:
    torch.manual_seed(4)
    model = Transformer(Shape(20, 22, 32, 4, 48, 2, 1)).eval()
    with torch.no_grad():
        model.encoder_layers[1].attention.out_weight[:, 2] = 0
        model.encoder_layers[1].attention.in_weight[2, 0] *= 20
    shares = (
        head_relevance(model, torch.randint(3, 20, (3, 8)), torch.randint(3, 22, (3, 5))).heads["encoder"][1].mean(0)
    )
    assert float(shares[2]) < 1e-6 and int(shares.argmax()) == 0


def test_post_norm_is_refused() -> None:
    model = Transformer(Shape(20, 22, 32, 4, 48, 1, 1, norm_first=False))
    with pytest.raises(ConfigError, match="layer norms before"):
        head_relevance(model, torch.ones(1, 2, dtype=torch.int64), torch.ones(1, 2, dtype=torch.int64))
