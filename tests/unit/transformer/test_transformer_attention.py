"""Attention and Transformer against torch's own, heads that are gated and removed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.transformer import (
    KINDS,
    MultiHeadAttention,
    Shape,
    Transformer,
    load_attention,
    load_transformer,
    remove_heads,
)

torch.set_num_threads(1)


def pair(width: int = 32, heads: int = 4) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(width, heads, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHeadAttention(width, heads)
    load_attention(ours, theirs)
    return ours, theirs


def test_self_and_cross_attention_equal_torchs() -> None:
    ours, theirs = pair()
    x, memory = torch.randn(3, 7, 32), torch.randn(3, 5, 32)
    hidden = torch.tensor([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0, 1, 1, 1, 1]], dtype=torch.bool)
    mask = torch.zeros(3, 1, 1, 5).masked_fill(hidden[:, None, None], -torch.inf)
    torch.testing.assert_close(ours(x), theirs(x, x, x)[0], atol=1e-5, rtol=0)
    expected, weights = theirs(x, memory, memory, key_padding_mask=hidden, average_attn_weights=False)
    torch.testing.assert_close(ours(x, memory, mask=mask), expected, atol=1e-5, rtol=0)
    (q,), (k,) = ours.project(slice(0, 1), x), ours.project(slice(1, 2), memory)
    torch.testing.assert_close(ours.weights(q, k, mask), weights, atol=1e-6, rtol=0)


@pytest.mark.parametrize("norm_first", [True, False])
def test_whole_transformer_equals_torchs(norm_first: bool) -> None:
    torch.manual_seed(1)
    theirs = nn.Transformer(32, 4, 2, 2, 48, 0.1, batch_first=True, norm_first=norm_first).eval()
    if not norm_first:
        theirs.encoder.norm = theirs.decoder.norm = None
    for parameter in theirs.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, std=0.5)
    ours = Transformer(Shape(20, 22, 32, 4, 48, 2, 2, norm_first=norm_first)).eval()
    load_transformer(ours, theirs)
    source, prefix = torch.randint(3, 20, (3, 9)), torch.randint(3, 22, (3, 6))
    source[1, 6:] = 0
    expected = theirs(
        ours.embed(ours.source_embedding, source), ours.embed(ours.target_embedding, prefix),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6),
        src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0,
    )  # fmt: skip
    memory, mask = ours.encode(source)
    found = ours.decode(prefix, memory, mask, ours.open_gates())
    assert float(found.abs().max()) > 0.5
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_output_is_the_gated_sum_over_heads() -> None:
    torch.manual_seed(2)
    module = MultiHeadAttention(16, 4, max_distance=2).double()
    x, gate = torch.randn(2, 5, 16).double(), torch.tensor([0.3, 1.0, 0.0, 0.7]).double()
    q, k, v = module.project(slice(0, 3), x)
    heads = module.weights(q, k, module.position_bias(5, 5)) @ v
    total = module.out_bias + sum(gate[h] * heads[:, h] @ module.out_weight[:, h].T for h in range(4))
    torch.testing.assert_close(module(x, gate=gate), total, atol=1e-10, rtol=0)


def test_fused_and_plain_attention_agree() -> None:
    torch.manual_seed(3)
    module = MultiHeadAttention(16, 4, max_distance=2)
    x = torch.randn(2, 5, 16)
    with_gradient = module(x)  # plain: the bias needs a gradient
    with torch.no_grad():
        torch.testing.assert_close(module(x), with_gradient, atol=1e-6, rtol=0)


def test_relative_bias_depends_on_the_clipped_distance_alone() -> None:
    module = MultiHeadAttention(16, 2, max_distance=2)
    bias = module.position_bias(6, 6)
    assert bias is not None
    for i in range(6):
        for j in range(6):
            near = max(-2, min(2, j - i))
            assert torch.equal(bias[0, :, i, j], 8.0 * module.relative[:, near + 2])
    assert torch.equal(module.position_bias(1, 6, offset=5), bias[:, :, 5:])


@pytest.mark.parametrize("norm_first", [True, False])
def test_removed_heads_equal_gates_of_zero_in_smaller_matrices(norm_first: bool) -> None:
    torch.manual_seed(4)
    model = Transformer(Shape(20, 22, 32, 4, 48, 2, 2, norm_first=norm_first, max_distance=3)).double().eval()
    keep = {kind: torch.tensor([[True, False, True, False], [False, True, True, True]]) for kind in KINDS}
    keep["encoder"][0] = False
    keep["cross"][1] = False
    smaller = remove_heads(model, keep)
    source, prefix = torch.randint(1, 20, (3, 9)), torch.randint(3, 22, (3, 6))
    gates = {kind: mask.double() for kind, mask in keep.items()}
    torch.testing.assert_close(smaller(source, prefix), model(source, prefix, gates), atol=1e-10, rtol=0)
    gone = sum(int((~mask).sum()) for mask in keep.values())
    per_head = 4 * 32 * 8 + 3 * 8
    biases = 7 * sum(int((~keep[kind]).sum()) for kind in ("encoder", "decoder"))
    before, after = (sum(p.numel() for p in m.parameters()) for m in (model, smaller))
    assert before - after == gone * per_head + biases
    assert smaller.encoder_layers[0].attention.heads == 0


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="divide"):
        MultiHeadAttention(10, 4)
    model = Transformer(Shape(9, 9, 16, 2, 16, 2, 1))
    with pytest.raises(ConfigError, match="no attention of kind"):
        model.attentions("nothing")
    with pytest.raises(ConfigError, match="2 layers"):
        remove_heads(model, {"encoder": torch.ones(1, 2, dtype=torch.bool)})
    with pytest.raises(ConfigError, match="fit"):
        load_attention(MultiHeadAttention(16, 4), nn.MultiheadAttention(16, 2))
