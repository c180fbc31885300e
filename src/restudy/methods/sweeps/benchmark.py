"""Trial-steps per CPU second: trials stacked in one program against one `nn.Module` after the other.

Both sides do the same mathematics on the same batches; their losses over 100 steps are compared as well. CPU seconds
of this process; read ratios, not seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.methods.sweeps.programs import Rule, build
from restudy.timing import least

TRIALS, STEPS = 16, 100
INPUTS, CLASSES = 196, 10


def mlp(seed: int, width: int = 64) -> nn.Sequential:
    """The study's MLP, 196-64-10."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(INPUTS, width), nn.ReLU(), nn.Linear(width, CLASSES))


def cnn(seed: int) -> nn.Sequential:
    """A small convolutional net on 14 x 14 pixels."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers = [nn.Unflatten(1, (1, 14, 14)), nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 49, CLASSES))


def _rates(rule: Rule, trials: int) -> tuple[Tensor, Tensor]:
    """Effective rates from .003 to .1, where nothing diverges: rounding would grow without bounds."""
    momentum = 0.0 if rule == "sgd" else 0.9
    return torch.logspace(-2.5, -1, trials) * (1 - momentum), torch.full((trials,), momentum)


def _batches(batch: int, steps: int) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(CLASSES, INPUTS, generator=generator)
    found = []
    for _ in range(steps):
        labels = torch.randint(CLASSES, (batch,), generator=generator)
        found.append((0.5 * centres[labels] + torch.randn(batch, INPUTS, generator=generator), labels))
    return found


def train_stacked(
    make: Callable[[int], nn.Module], rule: Rule, batches: list[tuple[Tensor, Tensor]], trials: int, method: str
) -> Tensor:
    """Train all trials together; return the losses (trials, steps), each before its step."""
    program = build([make(i) for i in range(trials)], rule, *_rates(rule, trials), method)
    return torch.stack([program.step(x, y) for x, y in batches], 1)


def train_singly(
    make: Callable[[int], nn.Module], rule: Rule, batches: list[tuple[Tensor, Tensor]], trials: int
) -> Tensor:
    """Train one module after the other with torch.optim.SGD; return the losses (trials, steps)."""
    found = []
    for i, (rate, momentum) in enumerate(zip(*_rates(rule, trials), strict=True)):
        model, losses = make(i), []
        optimizer = torch.optim.SGD(
            model.parameters(), float(rate), momentum=float(momentum), nesterov=rule == "nesterov"
        )
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.detach())
        found.append(torch.stack(losses))
    return torch.stack(found)


def compare(
    batch: int,
    *,
    make: Callable[[int], nn.Module] = mlp,
    rule: Rule = "momentum",
    method: str = "auto",
    trials: int = TRIALS,
    steps: int = STEPS,
    repeats: int = 3,
) -> dict[str, Any]:
    """Return trial-steps per CPU second `stacked` and `singly`, their `ratio`, and the largest loss `difference`.

    The difference is that of the losses of every trial at every step, in nats.
    """
    batches = _batches(batch, steps)
    together, alone = train_stacked(make, rule, batches, trials, method), train_singly(make, rule, batches, trials)
    stacked = trials * steps / least(lambda: train_stacked(make, rule, batches, trials, method), repeats)
    singly = trials * steps / least(lambda: train_singly(make, rule, batches, trials), repeats)
    difference = float((together - alone).abs().max())
    return {"stacked": stacked, "singly": singly, "ratio": stacked / singly, "difference": difference}


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`: MLPs fused at three batch sizes, and a stack of convolutions by either method."""
    found = []
    for batch, aim in ((4, 3.0), (32, 3.0), (256, None)):
        seen = compare(batch)
        note = (
            f"{seen['stacked']:,.0f} trial-steps per CPU second; losses of 100 steps differ by {seen['difference']:.0e}"
        )
        what = f"16 MLPs stacked against one nn.Module at a time, batch {batch}"
        found.append({"what": what, "ratio": seen["ratio"], "aim": aim, "note": note})
    for method in ("loop", "vmap"):
        seen = compare(32, make=cnn, method=method, trials=8, steps=20, repeats=5)
        what = f"8 small CNNs by {method} against one nn.Module at a time, batch 32"
        note = "what `auto` takes on a GPU" if method == "vmap" else "what `auto` takes on a CPU"
        found.append({"what": what, "ratio": seen["ratio"], "aim": None, "note": note})
    return found
