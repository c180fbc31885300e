"""What gated attention costs: training against torch's own Transformer, decoding with a cache and without heads.

CPU seconds of this process, one thread; read ratios, not seconds.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.methods.transformer.convert import load_transformer
from restudy.methods.transformer.decoding import greedy
from restudy.methods.transformer.model import Shape, Transformer, remove_heads
from restudy.timing import least

SHAPE = Shape(500, 500, d_model=64, heads=8, d_ff=128, encoder_layers=3, decoder_layers=2)
BATCH, LENGTH = 32, 18


class TorchTransformer(nn.Module):
    """The same model written with `nn.Transformer`: embeddings, sinusoids and tied output around it."""

    def __init__(self, ours: Transformer) -> None:
        super().__init__()
        s = ours.shape
        self.core = nn.Transformer(
            s.d_model, s.heads, s.encoder_layers, s.decoder_layers, s.d_ff, s.dropout, batch_first=True, norm_first=True
        )
        load_transformer(ours, self.core)
        self.source, self.target = nn.Embedding(500, s.d_model), nn.Embedding(500, s.d_model)
        self.source.load_state_dict(ours.source_embedding.state_dict())
        self.target.load_state_dict(ours.target_embedding.state_dict())
        self.embed, self.dropout = ours.embed, s.dropout

    def forward(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Logits (B, T, 500)."""
        future = nn.Transformer.generate_square_subsequent_mask(prefix.shape[1])
        hidden = source == 0
        states = self.core(
            self.embed(self.source, source), self.embed(self.target, prefix), tgt_mask=future, tgt_is_causal=True,
            src_key_padding_mask=hidden, memory_key_padding_mask=hidden,
        )  # fmt: skip
        return F.linear(states, self.target.weight)


def _tokens(length: int = LENGTH) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randint(3, 500, (BATCH, length), generator=generator) for _ in range(2))
    source[: BATCH // 2, -2:] = 0
    return source, target


def training_speed(*, steps: int = 20) -> dict[str, float]:
    """Return milliseconds of a training step, `ours_ms` and `torch_ms`, their `ratio`, and the logits' `difference`."""
    torch.manual_seed(0)
    ours = Transformer(SHAPE)
    theirs = TorchTransformer(ours)
    source, target = _tokens()
    ours.eval(), theirs.eval()
    with torch.no_grad():
        difference = float((ours(source, target) - theirs(source, target)).abs().max())
    times = []
    for model in (ours, theirs):
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)

        def step(model: nn.Module = model, optimizer: torch.optim.Optimizer = optimizer) -> None:
            logits = model(source, target[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        times.append(1000 * least(step, steps))
    return {"ours_ms": times[0], "torch_ms": times[1], "ratio": times[1] / times[0], "difference": difference}


def decoding_speed(*, length: int = 24, repeats: int = 3) -> dict[str, float]:
    """Return milliseconds of greedy decoding: `cached`, `uncached`, and `pruned` (cached, half of all heads gone).

    No sentence ends early: EOS is a token that is never chosen.
    """
    torch.manual_seed(0)
    model = Transformer(SHAPE).eval()
    keep = {kind: torch.arange(8).expand(len(gate), 8) % 2 == 0 for kind, gate in model.open_gates().items()}
    smaller = remove_heads(model, keep)
    source, _ = _tokens()

    def decode(net: Transformer, cached: bool = True) -> list[list[int]]:
        return greedy(net, source, bos=1, eos=-1, longest=length, cached=cached)

    found = {
        "cached": 1000 * least(lambda: decode(model), repeats),
        "uncached": 1000 * least(lambda: decode(model, cached=False), repeats),
        "pruned": 1000 * least(lambda: decode(smaller), repeats),
    }
    if decode(model) != decode(model, cached=False):
        raise AssertionError("cached and uncached decoding differ")
    return found


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`."""
    training, decoding = training_speed(), decoding_speed()
    step = f"{training['ours_ms']:.0f} ms a step; logits differ by {training['difference']:.0e}"
    return [
        {
            "what": "training a Transformer with gated heads: steps a second over torch.nn.Transformer",
            "ratio": training["ratio"], "aim": 1.0, "note": step,
        },
        {
            "what": "greedy decoding of 24 tokens with a cache over without",
            "ratio": decoding["uncached"] / decoding["cached"], "aim": 3.0, "note": f"{decoding['cached']:.0f} ms",
        },
        {
            "what": "greedy decoding with half of the heads removed over with all",
            "ratio": decoding["cached"] / decoding["pruned"], "aim": None, "note": f"{decoding['pruned']:.0f} ms",
        },
    ]  # fmt: skip
