"""Guided backpropagation and deconvolution: another gradient at every rectifier."""

from __future__ import annotations

from torch import Tensor

from restudy.methods.attribution.graph import Rectifier, override, rectifiers
from restudy.methods.attribution.passes import Forward, Problem
from restudy.methods.attribution.registry import Method, register


def guided_rule(rectifier: Rectifier, below: Tensor, above: Tensor) -> Tensor:
    """Pass g where g > 0 and the rectifier was open: g * 1[g > 0] * 1[0 < pre-activation < high]."""
    gate = rectifier.gate()
    return below.relu() if gate is None else above.relu() * gate


def deconvolution_rule(rectifier: Rectifier, below: Tensor, above: Tensor) -> Tensor:
    """Pass g where g > 0, whatever the forward pass did: g * 1[g > 0]."""
    return above.relu()


def guided_backprop(problem: Problem) -> Tensor:
    """Return guided backpropagation, (N, C, H, W), computed once for a problem."""

    def backward(forward: Forward) -> Tensor:
        override(rectifiers(forward.score, problem.model, "guided_backprop"), guided_rule)
        return forward.gradient()

    result: Tensor = problem.remember(
        "guided_backprop", lambda: problem.per_batch(problem.inputs, problem.target, backward)
    )
    return result


def deconvolution(problem: Problem) -> Tensor:
    """Return the deconvolution map, (N, C, H, W)."""

    def backward(forward: Forward) -> Tensor:
        override(rectifiers(forward.score, problem.model, "deconvolution"), deconvolution_rule)
        return forward.gradient()

    return problem.per_batch(problem.inputs, problem.target, backward)


def check_rectifiers(problem: Problem) -> None:
    """Raise NotApplicable if the model applies a nonlinear operation that has no rule."""
    rectifiers(Forward(problem.model, problem.inputs, problem.target).score, problem.model, "guided_backprop")


register(
    Method(
        "guided_backprop",
        "gradient that keeps only positive parts at every ReLU that was open",
        "Springenberg et al. 2015, arXiv:1412.6806, section 3.4",
        lambda problem, options: guided_backprop(problem),
        needs=("rectifier",),
        check=check_rectifiers,
    )
)
register(
    Method(
        "deconvolution",
        "gradient that keeps only positive parts at every ReLU, open or not",
        "Zeiler, Fergus 2014, arXiv:1311.2901, section 2.1",
        lambda problem, options: deconvolution(problem),
        needs=("rectifier",),
        check=check_rectifiers,
    )
)
