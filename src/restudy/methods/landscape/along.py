"""The loss and its gradient along the gradient: how much they vary, and how well the gradient predicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from restudy.errors import ConfigError
from restudy.methods.landscape.probe import Point, Probe, minus, norm


@dataclass(frozen=True)
class Along:
    """What was seen at w - s g for each step s (Santurkar et al. 2018, section 3.1 and figure 4).

    Attributes:
        loss, gradient_norm: at w. steps: the s, in the order asked for. losses: at each of them.
        changes: ||grad(w - s g) - g||. gradient_norms: ||grad(w - s g)||.
    """

    loss: float
    gradient_norm: float
    steps: tuple[float, ...]
    losses: tuple[float, ...]
    changes: tuple[float, ...]
    gradient_norms: tuple[float, ...]

    @property
    def loss_range(self) -> float:
        """Highest minus lowest loss on the way, the start included."""
        seen = (self.loss, *self.losses)
        return max(seen) - min(seen) if all(map(math.isfinite, seen)) else math.nan

    @property
    def gradient_change(self) -> float:
        """Largest ||grad(w - s g) - g||: the range of the gradient, which is 0 at the start."""
        return max(self.changes) if all(map(math.isfinite, self.changes)) else math.nan

    @property
    def effective_smoothness(self) -> float:
        """beta_eff, the largest ||grad(w - s g) - g|| / (s ||g||): a Lipschitz constant along the gradient."""
        if not all(map(math.isfinite, self.changes)) or self.gradient_norm == 0:
            return math.nan
        return max(c / (s * self.gradient_norm) for c, s in zip(self.changes, self.steps, strict=True))


def along_gradient(probe: Probe, steps: Sequence[float], *, start: Point | None = None) -> Along:
    """Walk along the negative gradient and look at loss and gradient at each step; one pass forward and back each.

    Args:
        probe: the batch and the weights. steps: step lengths s > 0 in units of the weights, e.g. `geometric(lr / 2,
            4 * lr, 10)`. start: loss and gradient at the weights, if known already.

    Raises:
        ConfigError: no steps, or one that is not above 0.
    """
    if not steps or not all(s > 0 for s in steps):
        raise ConfigError(f"steps {list(steps)!r}", where="along_gradient", remedy="give step lengths above 0")
    start = probe.point() if start is None else start
    losses, changes, norms = [], [], []
    for step in steps:
        there = probe.point(probe.moved(start.gradient, step))
        losses.append(float(there.loss))
        changes.append(norm(minus(there.gradient, start.gradient)))
        norms.append(norm(there.gradient))
    return Along(
        float(start.loss), norm(start.gradient), tuple(map(float, steps)), tuple(losses), tuple(changes), tuple(norms)
    )


def geometric(low: float, high: float, count: int) -> list[float]:
    """Return `count` step lengths from low to high, both included, in equal ratios.

    Raises:
        ConfigError: not 0 < low < high, or fewer than two.
    """
    if not 0 < low < high or count < 2:
        raise ConfigError(f"low {low}, high {high}, count {count}", where="geometric", remedy="0 < low < high, count 2")
    return [low * (high / low) ** (i / (count - 1)) for i in range(count)]
