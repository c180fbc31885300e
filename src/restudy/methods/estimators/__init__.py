"""Gradient estimators for expectations over discrete distributions, and Rao-Blackwellization around them.

Every estimator has a method `surrogate(log_q, objective, generator)` that returns one pseudo-loss per example, whose
gradient estimates the gradient of E_q[f(z)] + what f itself depends on, and a count `evaluations` of calls of f::

    estimator = RaoBlackwell(ScoreFunction(), summed=1)
    estimator.surrogate(log_q, objective, generator).mean().backward()
"""

from restudy.methods.estimators.gumbel import GumbelSoftmax
from restudy.methods.estimators.marginal import Marginal
from restudy.methods.estimators.objective import Objective, TableObjective
from restudy.methods.estimators.oracle import Moments, optimal_k, rao_blackwell_moments, top_k
from restudy.methods.estimators.rao_blackwell import RaoBlackwell
from restudy.methods.estimators.relax import Relax
from restudy.methods.estimators.score import ScoreFunction

__all__ = [
    "GumbelSoftmax",
    "Marginal",
    "Moments",
    "Objective",
    "RaoBlackwell",
    "Relax",
    "ScoreFunction",
    "TableObjective",
    "optimal_k",
    "rao_blackwell_moments",
    "top_k",
]
