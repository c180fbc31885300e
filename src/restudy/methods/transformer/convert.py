"""Weights of torch's own attention and Transformer in ours, to compare the two or to go on from a trained one."""

from __future__ import annotations

import torch
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.transformer.attention import MultiHeadAttention
from restudy.methods.transformer.layers import DecoderLayer, EncoderLayer, FeedForward
from restudy.methods.transformer.model import Transformer


@torch.no_grad()
def load_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Copy the weights of `torch.nn.MultiheadAttention`.

    Raises:
        ConfigError: other sizes, keys or values of a width of their own, or no bias.
    """
    if theirs.in_proj_weight is None or theirs.in_proj_bias is None or theirs.bias_k is not None:
        raise ConfigError("only attention with one width, a bias and no added key can be converted")
    if theirs.num_heads != ours.heads or theirs.embed_dim != ours.d_model:
        raise ConfigError(f"{theirs.num_heads} heads of width {theirs.embed_dim} do not fit into {ours.heads} heads")
    ours.in_weight.copy_(theirs.in_proj_weight.view_as(ours.in_weight))
    ours.in_bias.copy_(theirs.in_proj_bias.view_as(ours.in_bias))
    ours.out_weight.copy_(theirs.out_proj.weight.view_as(ours.out_weight))
    ours.out_bias.copy_(theirs.out_proj.bias)


@torch.no_grad()
def load_transformer(ours: Transformer, theirs: nn.Transformer) -> None:
    """Copy the layers of `torch.nn.Transformer` (embeddings are not part of it).

    Raises:
        ConfigError: another number of layers, or attention of another size.
    """
    if len(ours.encoder_layers) != len(theirs.encoder.layers) or len(ours.decoder_layers) != len(theirs.decoder.layers):
        raise ConfigError("the two have another number of layers")
    for mine, other in zip(ours.encoder_layers, theirs.encoder.layers, strict=True):
        assert isinstance(mine, EncoderLayer) and isinstance(other, nn.TransformerEncoderLayer)
        load_attention(mine.attention, other.self_attn)
        _feed_forward(mine.feed_forward, other)
        for name in ("norm1", "norm2"):
            getattr(mine, name).load_state_dict(getattr(other, name).state_dict())
    for target, source in zip(ours.decoder_layers, theirs.decoder.layers, strict=True):
        assert isinstance(target, DecoderLayer) and isinstance(source, nn.TransformerDecoderLayer)
        load_attention(target.attention, source.self_attn)
        load_attention(target.cross_attention, source.multihead_attn)
        _feed_forward(target.feed_forward, source)
        for name in ("norm1", "norm2", "norm3"):
            getattr(target, name).load_state_dict(getattr(source, name).state_dict())
    for own, norm in ((ours.encoder_norm, theirs.encoder.norm), (ours.decoder_norm, theirs.decoder.norm)):
        if isinstance(own, nn.LayerNorm) and isinstance(norm, nn.LayerNorm):
            own.load_state_dict(norm.state_dict())


def _feed_forward(mine: FeedForward, other: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer) -> None:
    mine.first.load_state_dict(other.linear1.state_dict())
    mine.second.load_state_dict(other.linear2.state_dict())
