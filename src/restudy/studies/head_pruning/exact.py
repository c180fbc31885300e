"""Stage `check`: statements about the program that must hold exactly (H8, X1, X2)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.heads import head_relevance
from restudy.methods.models import derive_seed
from restudy.methods.pruning import (
    cumulative,
    deterministic_gate,
    gate_moments,
    probability_one,
    probability_open,
    sample_gate,
)
from restudy.methods.transformer import KINDS, MultiHeadAttention, Shape, Transformer, load_attention, remove_heads

Row = dict[str, Any]
LOG_ALPHAS = (-4.0, -2.0, -0.5, 0.0, 0.5, 2.0, 4.0)


def check(context: Context, *, cases: int, draws: int) -> Outputs:
    """Compare attention with torch's, heads with their sum and removal, gates with their law; follow relevance down.

    Args:
        cases: random modules for each identity. draws: sampled gates for each log_alpha.

    Returns `identities`: the largest deviation of every case; for sampled gates in units of 5 standard errors.
    """
    rows: list[Row] = []
    with torch.random.fork_rng(devices=[]):
        for case in range(cases):
            torch.manual_seed(derive_seed(0, "identities", case))
            found = {"torch attention": _against_torch(), **_separable(), "removal": _removal(), **_relevance()}
            rows += [_row(check, f"case {case}", value) for check, value in found.items()]
        for log_alpha in LOG_ALPHAS:
            rows += [_row(check, f"log_alpha {log_alpha:g}", value) for check, value in _law(log_alpha, draws).items()]
    return {"identities": rows}


def _row(check: str, case: str, value: float) -> Row:
    return {"check": check, "case": case, "metric": "deviation", "value": value, "unit": "1"}


def _against_torch() -> float:
    """Largest difference of the outputs, float32, with itself and with a padded memory."""
    theirs = nn.MultiheadAttention(64, 8, batch_first=True)
    nn.init.normal_(theirs.in_proj_bias)
    nn.init.normal_(theirs.out_proj.bias)
    ours = MultiHeadAttention(64, 8)
    load_attention(ours, theirs)
    x, memory = torch.randn(4, 9, 64), torch.randn(4, 7, 64)
    hidden = torch.arange(7) >= torch.tensor([7, 5, 3, 6]).unsqueeze(1)
    mask = torch.zeros(4, 1, 1, 7).masked_fill(hidden[:, None, None], -torch.inf)
    with torch.no_grad():
        own = theirs(x, x, x, need_weights=False)[0] - ours(x, gate=torch.ones(8))
        cross = theirs(x, memory, memory, key_padding_mask=hidden, need_weights=False)[0] - ours(x, memory, mask=mask)
    return max(float(own.abs().max()), float(cross.abs().max()))


def _separable() -> dict[str, float]:
    """Output against the sum over heads of gate * head * rows of W_O; gate 0 against deletion; float64."""
    module = MultiHeadAttention(32, 4, max_distance=3).double()
    x, gate = torch.randn(3, 8, 32, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    with torch.no_grad():
        q, k, v = module.project(slice(0, 3), x)
        heads = module.weights(q, k, module.position_bias(8, 8)) @ v
        total = module.out_bias + sum(gate[h] * heads[:, h] @ module.out_weight[:, h].T for h in range(4))
        apart = float((total - module(x, gate=gate)).abs().max())
        shut = torch.tensor([1.0, 0.0, 1.0, 0.0], dtype=torch.float64)
        gone = float((module(x, gate=shut) - module.keep(shut.bool())(x)).abs().max())
    return {"sum over heads": apart, "gate 0 and deletion": gone}


def _small() -> tuple[Transformer, Tensor, Tensor]:
    """A model in float64 with every parameter away from its start, padded source tokens and a prefix."""
    model = Transformer(Shape(20, 22, 32, 4, 48, 2, 2, max_distance=3)).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    source, prefix = torch.randint(3, 20, (3, 9)), torch.randint(3, 22, (3, 6))
    source[1, 6:] = 0
    return model, source, prefix


@torch.no_grad()
def _removal() -> float:
    """The whole model: gates of 0 against smaller matrices; one layer loses all its heads."""
    model, source, prefix = _small()
    keep: dict[str, Tensor] = {kind: torch.rand(2, 4) > 0.5 for kind in KINDS}
    keep["encoder"][0] = False
    gates = {kind: mask.double() for kind, mask in keep.items()}
    return float((model(source, prefix, gates) - remove_heads(model, keep)(source, prefix)).abs().max())


def _relevance() -> dict[str, float]:
    """Largest relative deviation of the total relevance at any cut from that at the logits; heads' shares sum to 1."""
    model, source, prefix = _small()
    found = head_relevance(model, source, prefix)
    start = found.totals["logits"]
    cuts = max(float((total / start - 1).abs().max()) for total in found.totals.values())
    shares = max(float((s.sum(1) - 1).abs().max()) for layers in found.heads.values() for s in layers.values())
    return {"relevance conserved": cuts, "relevance shares": shares}


def _law(log_alpha: float, draws: int) -> dict[str, float]:
    """Closed forms against draws, in units of 5 standard errors, and the test-time gate against its formula."""
    generator = torch.Generator().manual_seed(derive_seed(0, "gates", str(log_alpha)))
    at = torch.full((draws,), log_alpha, dtype=torch.float64)
    gates = sample_gate(at, torch.rand(draws, generator=generator, dtype=torch.float64))
    mean, variance = gate_moments(log_alpha)
    fourth = float(((gates - mean) ** 4).mean())
    error = {"mean": (variance / draws) ** 0.5, "variance": (max(fourth - variance**2, 1e-12) / draws) ** 0.5}
    found = {
        "gate mean": abs(float(gates.mean()) - mean) / (5 * error["mean"]),
        "gate variance": abs(float(gates.var()) - variance) / (5 * error["variance"]),
    }
    laws = {"P(open)": (probability_open(at[0]), gates > 0), "P(one)": (probability_one(at[0]), gates >= 1)}
    laws["P(below .3)"] = (cumulative(at[0], 0.3), gates <= 0.3)
    for name, (exact, drawn) in laws.items():
        p = float(exact)
        found[name] = abs(float(drawn.double().mean()) - p) / (5 * (max(p * (1 - p), 1 / draws) / draws) ** 0.5)
    formula = min(1.0, max(0.0, 1.2 * float(torch.sigmoid(at[0])) - 0.1))
    found["test-time gate"] = abs(float(deterministic_gate(at[0])) - formula) / 1e-12
    return found
