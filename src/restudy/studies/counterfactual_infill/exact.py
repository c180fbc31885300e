"""Stage `check`: what must hold of the program whatever the networks have learned."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.infilling import Constant, Settings, fido, log_odds
from restudy.methods.infilling.concrete import concrete_sample, pixel_logits
from restudy.methods.infilling.objectives import Objective, objective_score, penalised_area, saliency
from restudy.methods.models import derive_seed

from .models import SceneCNN, make

OBJECTIVES: tuple[Objective, ...] = ("sdr", "ssr")
PENALTY = 0.3


def check(context: Context, *, problems: int, points: int, images: int, iterations: int) -> Outputs:
    """Compare the program with enumeration, and a batch with a loop.

    Args:
        problems: random images of 2 x 2 pixels.
        points: quantiles at which the Concrete distribution is looked at.
        images, iterations: masks that are optimised together and one by one.
    """
    rows = [_row("objective", f"problem {i}", *found) for i in range(problems) for found in _enumerated(i)]
    rows += [_row("concrete", f"theta {theta:g}", "law", _law(theta, points)) for theta in (0.01, 0.1, 0.5, 0.9)]
    rows += [_row("sign", objective, "inside minus outside", v) for objective, v in _signs()]
    rows += [_row("batch", f"image {i}", "1 - IoU", v) for i, v in enumerate(_batch_and_loop(images, iterations))]
    return {"identities": rows}


def _row(claim: str, case: str, metric: str, value: float) -> dict[str, Any]:
    return {"claim": claim, "case": case, "metric": metric, "value": value, "unit": "1"}


def _linear(weight: Tensor, bias: Tensor) -> nn.Module:
    """Build logits of two classes linear in 2 x 2 pixels, so that every expectation can be written down."""
    layer = nn.Linear(4, 2, dtype=weight.dtype)
    layer.weight.data, layer.bias.data = weight, bias
    return nn.Sequential(nn.Flatten(), layer).requires_grad_(False)


def _enumerated(problem: int) -> list[tuple[str, float]]:
    """Penalised objective over all 16 hard masks by their probabilities, against score and sum of theta apart."""
    generator = torch.Generator().manual_seed(derive_seed(problem, "enumerated"))
    weight = torch.randn(2, 4, generator=generator, dtype=torch.float64)
    model = _linear(weight, torch.zeros(2, dtype=torch.float64))
    image, picture = torch.rand(2, 1, 1, 2, 2, generator=generator, dtype=torch.float64)
    theta = torch.rand(1, 1, 2, 2, generator=generator, dtype=torch.float64)
    masks = torch.tensor(list(itertools.product([0.0, 1.0], repeat=4)), dtype=torch.float64).view(16, 1, 2, 2)
    chance = torch.where(masks > 0, theta, 1 - theta).flatten(1).prod(1)
    target = torch.zeros(16, dtype=torch.long)
    found = []
    for objective in OBJECTIVES:
        score = objective_score(model, image.expand_as(masks), picture.expand_as(masks), masks, target, objective)
        # With two classes the log-odds are a difference of logits and linear: the mean mask gives the mean score.
        mean = objective_score(model, image, picture, theta, target[:1], objective)
        found.append((f"{objective} score", float((chance * score).sum() - mean)))
        counted = (1 - masks if objective == "ssr" else masks).flatten(1).sum(1)
        total = (chance * (score + PENALTY * counted)).sum()
        ours = (chance * score).sum() + PENALTY * penalised_area(theta, objective)[0]
        found.append((f"{objective} penalty", float(total - ours)))
    return [(metric, abs(value)) for metric, value in found]


def _law(theta: float, points: int) -> float:
    """Share of samples above 1/2 at evenly spaced quantiles, minus theta, beyond the spacing of the quantiles."""
    uniform = (torch.arange(points, dtype=torch.float64) + 0.5) / points
    logits = pixel_logits(torch.tensor(theta, dtype=torch.float64))
    share = float((concrete_sample(logits, uniform, 0.1) > 0.5).double().mean())
    return max(0.0, abs(share - theta) - 1 / points)


def _signs() -> list[tuple[str, float]]:
    """One pixel carries the class: what saliency inside lacks of 1/2 more than outside, for either objective."""
    weight = torch.zeros(2, 4)
    weight[:, 0] = torch.tensor([12.0, -12.0])
    model = _linear(weight, torch.tensor([-6.0, 6.0]))
    image, target = torch.ones(1, 1, 2, 2), torch.zeros(1, dtype=torch.long)
    settings = Settings(grid=2, iterations=60, learning_rate=0.3, samples=4)
    found: list[tuple[str, float]] = []
    for objective in OBJECTIVES:
        masks = fido(model, image, target, Constant(0.0), [1.0], [0], objective=objective, settings=settings)
        shown = saliency(masks.theta(2)[0, 0, 0], objective)
        others = float((shown.sum() - shown[0, 0]) / 3)
        found.append((objective, max(0.0, 0.5 - (float(shown[0, 0]) - others))))
    return found


def _batch_and_loop(images: int, iterations: int) -> list[float]:
    """1 - IoU of the regions found in one batch and image by image, on an untrained classifier.

    Where both regions are empty the largest difference of theta stands in, so that nothing agrees for want of a region.
    """
    scenes = make("test", images, 28, (1, 8), 0, "batch check")
    model = SceneCNN(2, seed=0).eval().requires_grad_(False)
    target = log_odds(model(scenes.images), torch.zeros(images, dtype=torch.long)).lt(0).long()
    seeds = [derive_seed(0, "batch check", i) for i in range(images)]
    settings = Settings(14, iterations, 15 / iterations, 2)

    def theta(index: slice) -> Tensor:
        part = scenes.images[index], target[index], Constant(0.35), [0.0005], seeds[index]
        return fido(model, *part, settings=settings).theta(28)[0]

    together = theta(slice(0, images))
    found = []
    for i in range(images):
        alone = theta(slice(i, i + 1))[0]
        one, other = together[i] > 0.5, alone > 0.5
        both, either = (one & other).sum(), (one | other).sum()
        found.append(1 - float(both / either) if either else float((together[i] - alone).abs().max()))
    return found
