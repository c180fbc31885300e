"""Exact statements of Santurkar et al. 2018, section 4, as functions of numbers that can be checked.

One unit of a layer y = W x followed by batch norm with constant gamma: y holds the unit's m values over the batch,
z = gamma * standardised(y) + beta is the output, g = dL/dz what the next layers send back. eps is 0 throughout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.normalization.functional import batch_norm


@dataclass(frozen=True)
class Reduction:
    """Squared gradient norms at one batch-norm unit, and the two parts that averaging over the batch removes.

    Attributes:
        through: ||dL/dy||^2, measured by backpropagation through the unit.
        at_output: ||g||^2, the gradient at the unit's output: what an un-normalised net gets at the same activations.
        mean_part: (1/m) <1, g>^2, the gradient's mean over the batch.
        correlated_part: (1/m) <g, standardised y>^2.
        factor: gamma^2 / sigma^2.
        samples: m.
    """

    through: float
    at_output: float
    mean_part: float
    correlated_part: float
    factor: float
    samples: int

    @property
    def predicted(self) -> float:
        """Theorem 4.1 with 1/m in both terms: an equality, factor * (||g||^2 - mean part - correlated part)."""
        return self.factor * (self.at_output - self.mean_part - self.correlated_part)

    @property
    def error(self) -> float:
        """Deviation of the measured from the predicted squared norm, relative to factor * ||g||^2."""
        return abs(self.through - self.predicted) / (self.factor * self.at_output)


def gradient_reduction(inputs: Tensor, gradient: Tensor, *, gamma: float, beta: float = 0.0) -> Reduction:
    """Backpropagate a gradient through one batch-norm unit and take its norm apart (Theorem 4.1).

    Args:
        inputs: (m,) float, the unit's values y over the batch. gradient: (m,), g. gamma, beta: scale and shift.

    Raises:
        ConfigError: other shapes, or fewer than two samples.
    """
    if inputs.dim() != 1 or gradient.shape != inputs.shape or len(inputs) < 2:
        raise ConfigError(f"inputs {tuple(inputs.shape)}, gradient {tuple(gradient.shape)}", remedy="give two (m,)")
    values = inputs.detach().clone().requires_grad_()
    scale, shift = inputs.new_full((1,), gamma), inputs.new_full((1,), beta)
    output = batch_norm(values[:, None], scale, shift, eps=0.0)
    (back,) = torch.autograd.grad(output, values, gradient[:, None])
    mean, variance = inputs.mean(), inputs.var(unbiased=False)
    standardised = (inputs - mean) / variance.sqrt()
    samples = len(inputs)
    return Reduction(
        through=float(back.square().sum()),
        at_output=float(gradient.square().sum()),
        mean_part=float(gradient.sum().square()) / samples,
        correlated_part=float((gradient @ standardised).square()) / samples,
        factor=gamma**2 / float(variance),
        samples=samples,
    )


def printed_bound(reduction: Reduction) -> float:
    """Return the bound as version 3 of the paper prints it, with 1/sqrt(m) in the last term.

    It is below the measured squared norm whenever <g, standardised y> is not 0 and m > 1: an erratum.
    """
    correlated = reduction.correlated_part * math.sqrt(reduction.samples)
    return reduction.factor * (reduction.at_output - reduction.mean_part - correlated)


def matching_affine(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return gamma = standard deviation and beta = mean of each unit (C,): with them batch norm changes nothing.

    Observation 4.3: the network with batch norm and the one without have the same activations.
    """
    units = inputs.transpose(0, 1).flatten(1)
    return units.var(1, unbiased=False).sqrt(), units.mean(1)


def weight_gradient_bound(gradient: Tensor, size: float) -> tuple[float, float]:
    """Return the largest gradient of the weights over inputs of norm at most `size`, found and predicted.

    Args:
        gradient: (m, C), the gradient at the layer's output, held fixed. size: lambda, bound of the spectral norm of X.

    The gradient of W in y = x W' is g' X. Its Frobenius norm over X with spectral norm at most lambda is
    largest where X maps isometrically, X = lambda * U for U with orthonormal columns that span g, where it is
    lambda ||g||.
    """
    basis, _ = torch.linalg.qr(gradient)
    found = torch.linalg.matrix_norm(gradient.T @ (size * basis))
    return float(found), size * float(torch.linalg.matrix_norm(gradient))
