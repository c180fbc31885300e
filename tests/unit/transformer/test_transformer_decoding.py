"""Decoding with a cache against decoding anew, beam search against exhaustive search."""

from __future__ import annotations

import itertools

import pytest
import torch

from restudy.methods.transformer import Shape, Transformer, beam, greedy

torch.set_num_threads(1)
BOS, EOS = 1, 2


def model(target: int = 22, distance: int | None = 3) -> Transformer:
    torch.manual_seed(5)
    found = Transformer(Shape(20, target, 32, 4, 48, 2, 2, max_distance=distance)).eval()
    with torch.no_grad():
        for parameter in found.decoder_layers.parameters():  # else the output repeats the tied input
            parameter.add_(0.3 * torch.randn_like(parameter))
    return found


def sources() -> torch.Tensor:
    tokens = torch.randint(3, 20, (4, 9), generator=torch.Generator().manual_seed(0))
    tokens[1, 6:] = 0
    return tokens


@pytest.mark.parametrize("distance", [None, 3])
def test_cache_changes_nothing(distance: int | None) -> None:
    net, source = model(distance=distance), sources()
    gates = {kind: torch.rand(2, 4) for kind in ("encoder", "decoder", "cross")}
    options = {"bos": BOS, "eos": EOS, "longest": 12, "gates": gates}
    cached, anew = greedy(net, source, **options), greedy(net, source, cached=False, **options)
    assert cached == anew and len({tuple(row) for row in cached}) > 1


def test_steps_give_the_logits_of_the_whole_prefix() -> None:
    net, source = model().double(), sources()
    prefix = torch.randint(3, 22, (4, 7))
    memory, mask = net.encode(source)
    caches = net.start(memory)
    steps = torch.stack([net.step(prefix[:, t], caches, mask, t) for t in range(7)], 1)
    torch.testing.assert_close(steps, net(source, prefix), atol=1e-10, rtol=0)


def log_probability(net: Transformer, source: torch.Tensor, tokens: list[int]) -> float:
    full = torch.tensor([[BOS, *tokens, EOS]])
    logits = torch.log_softmax(net(source, full[:, :-1]), 2)
    return float(logits[0].gather(1, full[0, 1:, None]).sum().detach())


def test_a_beam_of_one_is_greedy() -> None:
    net, source = model(), sources()
    options = {"bos": BOS, "eos": EOS, "longest": 10}
    assert beam(net, source, width=1, alpha=0.0, **options) == greedy(net, source, **options)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_wide_beam_finds_the_best_of_all_translations(alpha: float) -> None:
    net, source = model(target=5), sources()[:1]
    longest = 4
    found = beam(net, source, bos=BOS, eos=EOS, longest=longest, width=64, alpha=alpha)[0]
    tokens = (0, 1, 3, 4)
    every = [list(p) for n in range(longest) for p in itertools.product(tokens, repeat=n)]
    best = max(every, key=lambda row: log_probability(net, source, row) / ((5 + len(row) + 1) / 6) ** alpha)
    assert found == best


def test_what_never_ends_is_cut() -> None:
    net, source = model(), sources()
    rows = greedy(net, source, bos=BOS, eos=21, longest=3)
    assert all(len(row) <= 3 for row in rows)
    assert all(len(row) <= 2 for row in beam(net, source, bos=BOS, eos=21, longest=2, width=3))
