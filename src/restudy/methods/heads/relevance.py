"""Layer-wise relevance propagation through a Transformer (Ding and others 2017; Voita and others 2019, section 4).

Every operation with outputs j and inputs i is expanded to first order at its input: z_ji = J_ji x_i + b_j / n_i, the
additive bias b_j shared by the inputs. Relevance goes down by

    R_i = sum_j R_j (z+_ji / (2 sum_i z+_ji + eps) + z-_ji / (2 sum_i z-_ji - eps)),

half along what speaks for j and half along what speaks against, and is rescaled for each sentence so that its total
stays. Softmax attention passes it to values, queries and keys, layer norm through its whole Jacobian, a residual sum to
both branches: nothing is treated as a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.transformer.attention import MultiHeadAttention
from restudy.methods.transformer.layers import DecoderLayer, EncoderLayer, FeedForward
from restudy.methods.transformer.model import Transformer

EPS = 1e-9


def linear_relevance(inputs: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor) -> Tensor:
    """Through y = x W' + b: inputs (..., I), weight (O, I), relevance of the outputs (..., O) -> (..., I)."""
    share = torch.zeros_like(weight[:, 0]) if bias is None else bias / weight.shape[1]
    plus, minus = weight.clamp_min(0), weight.clamp_max(0)
    x_plus, x_minus = inputs.clamp_min(0), inputs.clamp_max(0)
    if bool((share == 0).all()):
        up = _half(relevance, x_plus @ plus.T + x_minus @ minus.T, 1)
        down = _half(relevance, x_minus @ plus.T + x_plus @ minus.T, -1)
        found = x_plus * (up @ plus) + x_minus * (up @ minus)
        return found + x_minus * (down @ plus) + x_plus * (down @ minus)
    z = inputs.unsqueeze(-2) * weight + share.unsqueeze(-1)
    return _split(z, relevance)


def _half(relevance: Tensor, total: Tensor, sign: int) -> Tensor:
    """Half of the relevance over a total of one sign."""
    return 0.5 * relevance / (total + sign * EPS)


def _split(z: Tensor, relevance: Tensor) -> Tensor:
    """z (..., O, I) and relevance (..., O) -> (..., I)."""
    plus, minus = z.clamp_min(0), z.clamp_max(0)
    up, down = _half(relevance, plus.sum(-1), 1), _half(relevance, minus.sum(-1), -1)
    return (up.unsqueeze(-2) @ plus + down.unsqueeze(-2) @ minus).squeeze(-2)


def add_relevance(one: Tensor, two: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    """Through a sum of two tensors, element by element."""
    up = _half(relevance, one.clamp_min(0) + two.clamp_min(0), 1)
    down = _half(relevance, one.clamp_max(0) + two.clamp_max(0), -1)
    return (
        one.clamp_min(0) * up + one.clamp_max(0) * down,
        two.clamp_min(0) * up + two.clamp_max(0) * down,
    )


def norm_relevance(inputs: Tensor, norm: torch.nn.LayerNorm, relevance: Tensor) -> Tensor:
    """Through layer norm over the last dimension: (B, T, D) -> (B, T, D), with its full Jacobian for each token."""
    width = inputs.shape[-1]
    centred = inputs - inputs.mean(-1, keepdim=True)
    spread = (centred.square().mean(-1, keepdim=True) + norm.eps).sqrt()
    code = centred / spread
    jacobian = torch.eye(width, dtype=inputs.dtype, device=inputs.device) - 1 / width
    jacobian = (jacobian - code.unsqueeze(-1) * code.unsqueeze(-2) / width) / spread.unsqueeze(-1)
    z = norm.weight.unsqueeze(-1) * jacobian * inputs.unsqueeze(-2) + norm.bias.unsqueeze(-1) / width
    return _split(z, relevance)


def attention_relevance(
    q: Tensor, k: Tensor, v: Tensor, weights: Tensor, relevance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Through weights @ v with weights = softmax(q k' / sqrt(d) + bias), to queries, keys and values.

    Args:
        q: (B, H, T, d). k, v: (B, H, S, d). weights: (B, H, T, S). relevance: of the outputs, (B, H, T, d).

    Returns:
        Relevance of q, k and v. First to the values and the logits: J = weights_s for value s, weights_s (v_s - out)
        for logit s; then from a logit to the products q_c k_c, half to each factor.
    """
    out = weights @ v
    of_value = weights.unsqueeze(-1) * v.unsqueeze(2)  # (B, H, T, S, d)
    logits = (q @ k.transpose(2, 3)) * q.shape[3] ** -0.5
    of_logit = (weights * logits).unsqueeze(-1) * (v.unsqueeze(2) - out.unsqueeze(3))
    up = _half(relevance, of_value.clamp_min(0).sum(3) + of_logit.clamp_min(0).sum(3), 1).unsqueeze(3)
    down = _half(relevance, of_value.clamp_max(0).sum(3) + of_logit.clamp_max(0).sum(3), -1).unsqueeze(3)
    to_value = (of_value.clamp_min(0) * up + of_value.clamp_max(0) * down).sum(2)
    to_logit = (of_logit.clamp_min(0) * up + of_logit.clamp_max(0) * down).sum(4)  # (B, H, T, S)
    products = q.unsqueeze(3) * k.unsqueeze(2)  # (B, H, T, S, d)
    up, down = _half(to_logit, products.clamp_min(0).sum(4), 1), _half(to_logit, products.clamp_max(0).sum(4), -1)
    each = 0.5 * (products.clamp_min(0) * up.unsqueeze(4) + products.clamp_max(0) * down.unsqueeze(4))
    return each.sum(3), each.sum(2), to_value


@dataclass
class Relevance:
    """What was found on the way down.

    Attributes:
        heads: kind -> layer -> share of each head in the relevance of its layer's heads (B, H), sums 1 for a sentence.
        totals: name of a cut through the network -> total relevance per sentence (B,), all cuts equal if conserved.
    """

    heads: dict[str, dict[int, Tensor]] = field(default_factory=dict)
    totals: dict[str, Tensor] = field(default_factory=dict)


@torch.no_grad()
def head_relevance(model: Transformer, source: Tensor, prefix: Tensor) -> Relevance:
    """Relevance of all heads for the likeliest next token at every position of the prefix.

    Each position starts with its top-1 logit; all positions of a sentence go down together, which is their mean up to
    the rescaling. At a layer the relevance of its heads' outputs (before the output projection) is noted.

    Args:
        model: in evaluation mode, layer norms first. source: int64 (B, S). prefix: int64 (B, T) from BOS on.

    Raises:
        ConfigError: a model whose layer norms come after the sublayers.
    """
    if not model.shape.norm_first:
        raise ConfigError("relevance needs layer norms before the sublayers", where="head_relevance")
    tape = _Tape(model, source, prefix)
    found = Relevance({"encoder": {}, "decoder": {}, "cross": {}})
    relevance = tape.start()
    found.totals["logits"] = relevance.sum((1, 2))
    relevance = _keep(found.totals["logits"], norm_relevance(tape.last, _norm(model.decoder_norm), relevance))[0]
    memory = torch.zeros_like(tape.memory)
    for number in reversed(range(len(tape.decoder))):
        layer, inputs = tape.decoder[number]
        relevance, to_memory = _decoder_layer(layer, inputs, tape, relevance, found, number)
        memory = memory + to_memory
        found.totals[f"below decoder layer {number + 1}"] = relevance.sum((1, 2)) + memory.sum((1, 2))
    rest = relevance.sum((1, 2))
    relevance = _keep(memory.sum((1, 2)), norm_relevance(tape.encoded, _norm(model.encoder_norm), memory))[0]
    for number in reversed(range(len(tape.encoder))):
        block, inputs = tape.encoder[number]
        relevance = _encoder_layer(block, inputs, tape.mask, relevance, found, number)
        found.totals[f"below encoder layer {number + 1}"] = relevance.sum((1, 2)) + rest
    return found


class _Tape:
    """One forward pass with the inputs of every layer."""

    def __init__(self, model: Transformer, source: Tensor, prefix: Tensor) -> None:
        self.mask = model.padding_mask(source)
        hidden = model.embed(model.source_embedding, source)
        self.encoder: list[tuple[EncoderLayer, Tensor]] = []
        for layer in model.encoder_layers:
            assert isinstance(layer, EncoderLayer)
            self.encoder.append((layer, hidden))
            hidden = layer(hidden, self.mask)
        self.encoded, self.memory = hidden, model.encoder_norm(hidden)
        length = prefix.shape[1]
        self.future = torch.full((length, length), -torch.inf, device=prefix.device).triu(1).to(hidden.dtype)
        hidden = model.embed(model.target_embedding, prefix)
        self.decoder: list[tuple[DecoderLayer, Tensor]] = []
        for block in model.decoder_layers:
            assert isinstance(block, DecoderLayer)
            self.decoder.append((block, hidden))
            hidden = block(hidden, self.memory, self.future, self.mask)
        self.last = hidden
        self.states = model.decoder_norm(hidden)
        self.model, self.real = model, prefix != model.shape.padding

    def start(self) -> Tensor:
        """Relevance of the final states: 1 at the top-1 logit of every position that is no padding."""
        top = self.model.logits(self.states).argmax(2)
        rows = self.model.target_embedding.weight[top].unsqueeze(2)  # (B, T, 1, D)
        one = self.real.to(self.states.dtype)
        found = _split(rows * self.states.unsqueeze(2), one.unsqueeze(2))
        return _keep(one.sum(1), found)[0]


def _norm(module: torch.nn.Module) -> torch.nn.LayerNorm:
    assert isinstance(module, torch.nn.LayerNorm)
    return module


def _keep(total: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
    """Parts (B, ...) rescaled for each sentence so that together they hold the total (B,)."""
    found = torch.stack([part.flatten(1).sum(1) for part in parts]).sum(0)
    factor = torch.where(found.abs() > 0, total / found.where(found.abs() > 0, torch.ones_like(found)), 0.0)
    return tuple(part * factor.view(-1, *[1] * (part.dim() - 1)) for part in parts)


def _residual(inputs: Tensor, update: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
    one, two = _keep(relevance.sum((1, 2)), *add_relevance(inputs, update, relevance))
    return one, two


def _feed_forward(block: FeedForward, norm: torch.nn.LayerNorm, hidden: Tensor, relevance: Tensor) -> Tensor:
    """Relevance of the sublayer's output -> of its input before the layer norm."""
    total = relevance.sum((1, 2))
    given = norm(hidden)
    inner = block.first(given)
    (relevance,) = _keep(total, linear_relevance(inner.relu(), block.second.weight, block.second.bias, relevance))
    relevance = relevance * (inner > 0)
    (relevance,) = _keep(total, linear_relevance(given, block.first.weight, block.first.bias, relevance))
    return _keep(total, norm_relevance(hidden, norm, relevance))[0]


def _attention(
    module: MultiHeadAttention, given: Tensor, memory: Tensor, mask: Tensor | None, relevance: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Relevance of the output -> of the queries' input, of the memory, and of the heads (B, H)."""
    total = relevance.sum((1, 2))
    (q,), (k, v) = module.project(slice(0, 1), given), module.project(slice(1, 3), memory)
    weights = module.weights(q, k, module.logits_bias(q.shape[2], k.shape[2], mask))
    flat = (weights @ v).transpose(1, 2).flatten(2)
    matrix = module.out_weight.flatten(1)
    (relevance,) = _keep(total, linear_relevance(flat, matrix, module.out_bias, relevance))
    relevance = relevance.view(*flat.shape[:2], module.heads, -1).transpose(1, 2)
    heads = relevance.sum((2, 3))
    parts = _keep(total, *attention_relevance(q, k, v, weights, relevance))
    found = []
    for part, inputs, place in zip(parts, (given, memory, memory), range(3), strict=True):
        own = part.transpose(1, 2).flatten(2)
        matrix, bias = module.in_weight[place].flatten(0, 1), module.in_bias[place].flatten()
        found.append(_keep(own.sum((1, 2)), linear_relevance(inputs, matrix, bias, own))[0])
    return found[0], found[1] + found[2], heads


def _encoder_layer(
    layer: EncoderLayer, inputs: Tensor, mask: Tensor | None, relevance: Tensor, found: Relevance, number: int
) -> Tensor:
    given = layer.norm1(inputs)
    update = layer.attention(given, mask=mask)
    hidden = inputs + update
    below, relevance = _residual(hidden, layer.feed_forward(layer.norm2(hidden)), relevance)
    relevance = below + _feed_forward(layer.feed_forward, layer.norm2, hidden, relevance)
    below, relevance = _residual(inputs, update, relevance)
    total = relevance.sum((1, 2))
    queries, keys, heads = _attention(layer.attention, given, given, mask, relevance)
    found.heads["encoder"][number] = heads / heads.sum(1, keepdim=True)
    return below + _keep(total, norm_relevance(inputs, layer.norm1, queries + keys))[0]


def _decoder_layer(
    layer: DecoderLayer, inputs: Tensor, tape: _Tape, relevance: Tensor, found: Relevance, number: int
) -> tuple[Tensor, Tensor]:
    given = layer.norm1(inputs)
    update = layer.attention(given, mask=tape.future)
    hidden = inputs + update
    asked = layer.norm2(hidden)
    read = layer.cross_attention(asked, tape.memory, mask=tape.mask)
    high = hidden + read
    below, relevance = _residual(high, layer.feed_forward(layer.norm3(high)), relevance)
    relevance = below + _feed_forward(layer.feed_forward, layer.norm3, high, relevance)
    below, relevance = _residual(hidden, read, relevance)
    queries, memory, heads = _attention(layer.cross_attention, asked, tape.memory, tape.mask, relevance)
    found.heads["cross"][number] = heads / heads.sum(1, keepdim=True)
    relevance = below + _keep(queries.sum((1, 2)), norm_relevance(hidden, layer.norm2, queries))[0]
    below, relevance = _residual(inputs, update, relevance)
    total = relevance.sum((1, 2))
    queries, keys, heads = _attention(layer.attention, given, given, tape.future, relevance)
    found.heads["decoder"][number] = heads / heads.sum(1, keepdim=True)
    return below + _keep(total, norm_relevance(inputs, layer.norm1, queries + keys))[0], memory
