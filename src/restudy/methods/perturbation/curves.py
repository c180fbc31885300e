"""Perturbation curves: how the score of a class falls as regions are replaced one by one (Samek et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.perturbation.fills import Fill
from restudy.methods.perturbation.regions import Grid, pixel_steps

SCORES = ("logit", "probability", "log_odds")
DEFAULT_BATCH_SIZE = 64
"""Images in a pass: larger ones leave a core's cache (measured: 44 us an image of a small CNN at 64, 55 at 256)."""


@dataclass(frozen=True)
class Curves:
    """Scores of the explained class after 0, 1, ..., L regions, (N, L + 1) float64 on the CPU, mean over the draws.

    `logit` as the model returns it; `probability` its softmax; `log_odds` the logarithm of p / (1 - p).
    """

    logit: Tensor
    probability: Tensor
    log_odds: Tensor

    def score(self, name: str) -> Tensor:
        """Return one of the scores by name."""
        if name not in SCORES:
            raise ConfigError(f"score {name!r} is not known", remedy=f"allowed: {', '.join(SCORES)}")
        found: Tensor = getattr(self, name)
        return found


def perturbation_curves(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    orders: Mapping[str, Tensor],
    grid: Grid,
    fill: Fill,
    *,
    steps: int,
    draws: int = 1,
    generator: torch.Generator,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> dict[str, Curves]:
    """Perturb images along several orders and return the curves of each.

    Image k of a sequence is x^(k) = g(x^(k-1), r_k): the regions 1 to k of the order are filled. All orders see the
    same draws of the fill (common random numbers), so differences between orders are not differences of noise. Steps,
    images and draws run together, `batch_size` images in a pass; the model's mode is restored.

    Args:
        model: images to logits (N, classes), run in evaluation mode.
        images: (N, C, H, W) on the model's device. target: (N,) int64, the class whose score is followed.
        orders: name to order, int64 (N, regions) each, from `region_order`.
        steps: L, regions replaced at the end; at most the number of regions.
        draws: repetitions of a random fill, averaged; a fill that is not random is drawn once.
        generator: a CPU generator for the fill.

    Raises:
        ConfigError: arguments that do not fit together.
    """
    _check(images, target, orders, grid, steps, draws, batch_size)
    repeats = draws if fill.random else 1
    place = {name: pixel_steps(order.to(images.device), grid) for name, order in orders.items()}
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.inference_mode():
            start = _scores(model, images, target, batch_size)[:, :, None]
            totals = {name: torch.zeros(3, len(images), steps, dtype=torch.float64) for name in orders}
            for _ in range(repeats):
                drawn = fill.draw(images, generator) if fill.draw is not None else None
                for name, at in place.items():
                    totals[name] += _one_draw(
                        model, images, target, at, fill, drawn, start[:, :, 0], steps, generator, batch_size
                    )
    finally:
        for module, training in modes:
            module.training = training
    return {name: Curves(*torch.cat([start, total / repeats], 2).clone()) for name, total in totals.items()}


def aopc(curve: Tensor, steps: int | None = None) -> Tensor:
    """Return the area over the perturbation curve, (N,): mean of f(x^0) - f(x^k) over k = 0 ... L.

    `curve`: scores (N, steps + 1). `steps`: L, by default all. Averaging over images is left to the caller.
    """
    last = curve.shape[1] - 1 if steps is None else steps
    if not 1 <= last < curve.shape[1]:
        raise ConfigError(f"steps is {last}", where="aopc", remedy=f"the curve has 1 to {curve.shape[1] - 1}")
    return (curve[:, :1] - curve[:, : last + 1]).mean(1)


def abpc(least_first: Tensor, most_first: Tensor, steps: int | None = None) -> Tensor:
    """Return the area between the curves of both orders, (N,): mean of f(LeRF_k) - f(MoRF_k), larger is better."""
    return aopc(most_first, steps) - aopc(least_first, steps)


def _one_draw(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    at: Tensor,
    fill: Fill,
    drawn: Tensor | None,
    start: Tensor,
    steps: int,
    generator: torch.Generator,
    batch_size: int,
) -> Tensor:
    """Scores along one order and one draw, (3, N, steps): steps of a few images in every pass.

    `start` (3, N): scores of the unperturbed images.
    """
    count = torch.arange(1, steps + 1, device=images.device).view(1, -1, 1, 1)
    group = max(1, batch_size // steps)
    parts = []
    for first in range(0, len(images), group):
        shown, goal = images[first : first + group], target[first : first + group]
        masks = at[first : first + group, None] < count
        if drawn is not None:
            filled = drawn[first : first + group, None]
        else:
            assert fill.infill is not None
            painted = [fill.infill(shown, masks[:, k], generator) for k in range(steps)]
            filled = torch.stack(painted, 1)
        sequence = torch.where(masks[:, :, None], filled, shown[:, None])
        parts.append(_sequence_scores(model, shown, sequence, goal, start[:, first : first + group], batch_size))
    return torch.cat(parts, 1)


def _sequence_scores(
    model: nn.Module, shown: Tensor, sequence: Tensor, goal: Tensor, start: Tensor, batch_size: int
) -> Tensor:
    """Scores (3, N, steps) of sequences (N, steps, C, H, W); a step that changes no pixel keeps the score before it."""
    before = torch.cat([shown[:, None], sequence[:, :-1]], 1)
    changed = (sequence != before).flatten(2).any(2)
    count = changed.cumsum(1).cpu()
    if bool(changed.any()):
        found = _scores(model, sequence[changed], goal[:, None].expand(changed.shape)[changed], batch_size)
        last = count[:, -1:].cumsum(0) - count[:, -1:]
        scores = found[:, (last + count - 1).clamp(min=0)]
    else:
        scores = torch.zeros(3, *changed.shape, dtype=torch.float64)
    return torch.where(count > 0, scores, start[:, :, None])


def _scores(model: nn.Module, images: Tensor, target: Tensor, batch_size: int) -> Tensor:
    """Logit, probability and log odds of each image's class, float64 (3, N) on the CPU."""
    parts = [model(images[first : first + batch_size]) for first in range(0, len(images), batch_size)]
    logits = torch.cat(parts).double().cpu()
    goal = target.cpu()[:, None]
    if logits.dim() != 2 or int(goal.min()) < 0 or int(goal.max()) >= logits.shape[1]:
        raise ConfigError(
            f"the model returns {tuple(logits.shape)} for classes {int(goal.min())} to {int(goal.max())}",
            where="perturbation_curves",
            remedy="it must return logits (N, classes)",
        )
    own = logits.gather(1, goal)
    others = logits.scatter(1, goal, -torch.inf).logsumexp(1)
    odds = own[:, 0] - others
    return torch.stack([own[:, 0], torch.sigmoid(odds), odds])


def _check(
    images: Tensor, target: Tensor, orders: Mapping[str, Tensor], grid: Grid, steps: int, draws: int, batch_size: int
) -> None:
    wanted, count = (len(images), grid.count), images.shape[:1]
    shapes = [tuple(order.shape) for order in orders.values()]
    fits = images.dim() == 4 and images.shape[2:] == (grid.height, grid.width)
    checks = [
        (fits, "images", tuple(images.shape), "(N, C, H, W) of the grid"),
        (target.shape == count and target.dtype == torch.int64, "target", tuple(target.shape), "int64 (N,)"),
        (all(shape == wanted for shape in shapes), "orders", shapes, f"{wanted} each"),
        (1 <= steps <= grid.count, "steps", steps, f"1 to {grid.count}"),
        (draws >= 1 and batch_size >= 1, "draws, batch_size", (draws, batch_size), "at least 1"),
    ]
    for fine, name, value, allowed in checks:
        if not fine:
            raise ConfigError(f"{name}: {value}", where="perturbation_curves", remedy=f"allowed: {allowed}")
