"""Relevance propagation through one operation: epsilon rule, alpha-beta rule, deconvolution without switches.

A rule is asked what an operation hands to its inputs when `relevance` arrives at its output. Bach et al. 2015,
10.1371/journal.pone.0130140, equations 58 and 60; Samek et al. 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.grad import conv2d_input

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Affine:
    """y = A(x; weight) + bias, A linear in both: a convolution, a matrix, or a batch norm in evaluation mode.

    `forward(x, w)` applies A without the bias; `backward(s, w, x)` its transpose, of the shape of x. `bias`
    broadcasts over y, or is None.
    """

    forward: Callable[[Tensor, Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]
    weight: Tensor
    bias: Tensor | None


@dataclass
class Step:
    """Totals of one operation on the way down, (N,) each: what arrived, what was handed on.

    `mixed_in`, `mixed_out`: the same for the part that arrived at neurons whose contributions have both signs; the
    alpha-beta rule conserves relevance there only.
    """

    operation: str
    arrived: Tensor
    handed_on: Tensor
    mixed_in: Tensor | None = None
    mixed_out: Tensor | None = None


@dataclass
class Rule:
    """Base of the rules: proportional shares, stabilised by `epsilon`, wherever contributions are not split by sign.

    `epsilon` is added to every denominator with the denominator's sign, +epsilon at 0 (as zennit does). With epsilon 0
    the denominator can vanish; relevance 0 over 0 is then 0, anything else infinite.
    """

    epsilon: float
    steps: list[Step] | None = field(default=None, compare=False)

    def stabilized(self, relevance: Tensor, z: Tensor) -> Tensor:
        """Return relevance / (z + epsilon sign(z)), sign(0) = 1."""
        if self.epsilon == 0:
            return torch.where(relevance == 0, torch.zeros_like(relevance), relevance / z)
        return relevance / torch.where(z < 0, z - self.epsilon, z + self.epsilon)

    def affine(self, op: Affine, x: Tensor, z: Tensor, relevance: Tensor) -> Tensor:
        """Return what an affine operation hands to its input; z is its output."""
        raise NotImplementedError

    def average(self, op: Linear, x: Tensor, z: Tensor, relevance: Tensor) -> Tensor:
        """Return the shares of averages and sums over pixels: in proportion to what each pixel adds."""
        return x * transposed(op, x, self.stabilized(relevance, z))

    def addition(self, parts: tuple[Tensor, ...], z: Tensor, relevance: Tensor) -> tuple[Tensor, ...]:
        """Return the shares of the terms of a sum (a residual connection): in proportion to each term."""
        quotient = self.stabilized(relevance, z)
        return tuple(reduced(part * quotient, part) for part in parts)

    def rectifier(self, relevance: Tensor) -> Tensor:
        """Return the relevance unchanged: a rectifier has one input for each output."""
        return relevance

    def note(self, operation: str, arrived: Tensor, handed_on: tuple[Tensor, ...]) -> None:
        """Keep the totals of an operation, where they are asked for."""
        if self.steps is not None:
            total = sum((_total(part) for part in handed_on), torch.zeros_like(_total(arrived)))
            self.steps.append(Step(operation, _total(arrived), total))


@dataclass
class EpsilonRule(Rule):
    """R_i = sum_j z_ij / (z_j + epsilon sign(z_j)) R_j, z_j with its bias, which keeps its share."""

    def affine(self, op: Affine, x: Tensor, z: Tensor, relevance: Tensor) -> Tensor:
        """Return the shares of the inputs in proportion to their contributions."""
        return x * op.backward(self.stabilized(relevance, z), op.weight, x)


@dataclass
class AlphaBetaRule(Rule):
    """R_i = sum_j (alpha z_ij+ / z_j+ - beta z_ij- / z_j-) R_j with alpha - beta = 1.

    z+ sums positive inputs on positive weights and negative ones on negative weights; a bias belongs to the part of its
    sign. The paper writes the same rule with alpha + beta = 1 and a negative beta.
    """

    alpha: float = 2.0
    beta: float = 1.0

    def affine(self, op: Affine, x: Tensor, z: Tensor, relevance: Tensor) -> Tensor:
        """Return the shares of the inputs, contributions of either sign apart."""
        found, _, _ = self._shares(op, x, relevance)
        return found

    def split(self, op: Affine, x: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the relevance that arrived at neurons with contributions of both signs, and what they handed on."""
        _, positive, negative = self._shares(op, x, relevance)
        mixed = torch.where((positive > 0) & (negative < 0), relevance, torch.zeros_like(relevance))
        handed, _, _ = self._shares(op, x, mixed)
        return mixed, handed

    def _shares(self, op: Affine, x: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        up, down = op.weight.clamp(min=0), op.weight.clamp(max=0)
        above, below = x.clamp(min=0), x.clamp(max=0)
        signed = bool((x < 0).any())
        positive, negative = op.forward(above, up), op.forward(above, down)
        if signed:
            positive, negative = positive + op.forward(below, down), negative + op.forward(below, up)
        if op.bias is not None:
            positive, negative = positive + op.bias.clamp(min=0), negative + op.bias.clamp(max=0)
        for_it = self.stabilized(self.alpha * relevance, positive)
        against = self.stabilized(self.beta * relevance, negative)

        def share(part: Tensor, first: Tensor, second: Tensor) -> Tensor:
            found = op.backward(for_it, first, part)
            return part * (found - op.backward(against, second, part) if self.beta else found)

        found = share(above, up, down)
        return (found + share(below, down, up) if signed else found), positive, negative


@dataclass
class NoSwitches:
    """Deconvolution whose max-pools do not remember the winner: every pixel of a window gets an equal part.

    Everything else as in deconvolution: the gradient, and its positive part at every rectifier.
    """

    def rectifier(self, gradient: Tensor) -> Tensor:
        """Return the positive part of the gradient, whatever the forward pass did."""
        return gradient.relu()


def transposed(op: Linear, x: Tensor, s: Tensor) -> Tensor:
    """Return the transpose of a linear operation on s, of the shape of x."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        (found,) = torch.autograd.grad(op(leaf), leaf, s)
    return found


def reduced(values: Tensor, like: Tensor) -> Tensor:
    """Return values summed over the dimensions along which `like` was broadcast."""
    return values.sum_to_size(like.shape) if values.shape != like.shape else values


def convolution(
    weight: Tensor,
    bias: Tensor | None,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
) -> Affine:
    """Return a convolution (N, C, H, W) as an affine operation."""

    def forward(x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(x, w, None, stride, padding, dilation, groups)

    def backward(s: Tensor, w: Tensor, x: Tensor) -> Tensor:
        found: Tensor = conv2d_input(x.shape, w, s.contiguous(), stride, padding, dilation, groups)  # type: ignore[no-untyped-call]
        return found

    return Affine(forward, backward, weight, None if bias is None else bias.view(1, -1, 1, 1))


def matrix(weight: Tensor, bias: Tensor | None) -> Affine:
    """Return x W' + b with W (outputs, inputs), over the last dimension of x."""
    return Affine(lambda x, w: F.linear(x, w), lambda s, w, x: s @ w, weight, bias)


def scaling(weight: Tensor, bias: Tensor | None) -> Affine:
    """Return x * weight + bias, element by element; both broadcast over x."""
    return Affine(lambda x, w: x * w, lambda s, w, x: s * w, weight, bias)


def _total(values: Tensor) -> Tensor:
    return values.flatten(1).sum(1) if values.dim() > 1 else values
