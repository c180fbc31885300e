"""Stage `identities`: the paper's exact statements on random draws, in float64 and without eps. No training."""

from __future__ import annotations

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.landscape import Probe, covariate_shift, layer_parameters
from restudy.methods.models import derive_seed
from restudy.methods.normalization import (
    batch_norm,
    gradient_reduction,
    matching_affine,
    printed_bound,
    weight_gradient_bound,
)

from .models import DeepLinear, regression


def identities(context: Context, *, draws: int, largest_batch: int) -> Outputs:
    """Evaluate Theorem 4.1, Observation 4.3 and what follows from them.

    Deviations are relative; `printed_bound_holds` is 1 where the printed bound holds.
    """
    generator = torch.Generator().manual_seed(derive_seed(0, "identities"))
    found = [
        _theorem(generator, largest_batch) | _observation(generator, largest_batch) | _weights(generator)
        for _ in range(draws)
    ]
    rows = [{"draw": draw, "check": n, "value": v} for draw, one in enumerate(found) for n, v in one.items()]
    still = [{"draw": draw, "check": "shift_without_lower_step", "value": _still(draw)} for draw in range(3)]
    return {"identities": rows + still}


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _theorem(generator: torch.Generator, largest: int) -> dict[str, float]:
    """Compare the norm of the gradient through one unit with the formula with 1/m and the printed 1/sqrt(m)."""
    samples = int(torch.randint(4, largest + 1, (1,), generator=generator))
    inputs = 3 * _normal(generator, samples) + _normal(generator, 1)
    gradient = _normal(generator, samples) + _normal(generator, 1)
    gamma = float(_normal(generator, 1).exp())
    found = gradient_reduction(inputs, gradient, gamma=gamma)
    return {"theorem_error": found.error, "printed_bound_holds": float(found.through <= printed_bound(found))}


def _observation(generator: torch.Generator, largest: int) -> dict[str, float]:
    """Set gamma = sigma and beta = mean: the same activations, and never a larger gradient behind the unit."""
    samples = int(torch.randint(4, largest + 1, (1,), generator=generator))
    outputs = _normal(generator, samples, 5) * _normal(generator, 5).exp() + _normal(generator, 5)
    gamma, beta = matching_affine(outputs)
    gap = (batch_norm(outputs, gamma, beta, eps=0.0) - outputs).abs().max() / outputs.abs().max()
    gradient = _normal(generator, samples)
    found = gradient_reduction(outputs[:, 0], gradient, gamma=float(gamma[0]), beta=float(beta[0]))
    missing = found.at_output - found.through
    removed = found.mean_part + found.correlated_part
    return {
        "observation_gap": float(gap),
        "gradient_excess": max(0.0, found.through / found.at_output - 1.0),
        "missing_part_error": abs(missing - removed) / found.at_output,
    }


def _weights(generator: torch.Generator) -> dict[str, float]:
    """Compare the largest weight gradient over bounded inputs with its closed form, with batch norm and without."""
    outputs, gradient, size = _normal(generator, 12, 3), _normal(generator, 12, 3), 2.0
    gamma, beta = matching_affine(outputs)
    values = outputs.clone().requires_grad_()
    (through,) = torch.autograd.grad(batch_norm(values, gamma, beta, eps=0.0), values, gradient)
    plain, normed = weight_gradient_bound(gradient, size), weight_gradient_bound(through, size)
    return {
        "weight_bound_error": max(abs(a - b) / b for a, b in (plain, normed)),
        "weight_bound_excess": max(0.0, normed[0] / plain[0] - 1.0),
    }


def _still(seed: int) -> float:
    """Measure covariate shift at a learning rate of 0, where no lower layer moves: it must be 0, exactly."""
    data = regression(50, 6, seed=seed)
    model = DeepLinear("bn", depth=4, size=6, seed=seed)
    layers = layer_parameters(model, [f"layer{number}" for number in range(1, 5)])
    probe = Probe(model, lambda net: data.run(net, 0)[0], seed=0)
    return max(shift.l2 for shift in covariate_shift(probe, layers, 0.0))
