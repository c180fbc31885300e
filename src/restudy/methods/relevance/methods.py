"""The methods that this package adds: layer-wise relevance propagation and deconvolution without switches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.attribution.passes import Problem
from restudy.methods.attribution.registry import Method, Option
from restudy.methods.relevance.rules import AlphaBetaRule, EpsilonRule, NoSwitches, Rule
from restudy.methods.relevance.tracing import propagate

BACH = "Bach et al. 2015, 10.1371/journal.pone.0130140"
STABILIZER = 1e-6


def epsilon_rule(options: Mapping[str, Any]) -> Rule:
    """Return the epsilon rule with the given `epsilon`."""
    return EpsilonRule(float(options["epsilon"]))


def alpha_beta_rule(options: Mapping[str, Any]) -> Rule:
    """Return the alpha-beta rule; ConfigError unless alpha - beta = 1."""
    alpha, beta = float(options["alpha"]), float(options["beta"])
    if abs(alpha - beta - 1.0) > 1e-9:
        raise ConfigError(
            f"alpha {alpha:g} and beta {beta:g}",
            where="lrp_alpha_beta",
            remedy="alpha - beta must be 1, e.g. 2 and 1 (older papers: 2 and -1)",
        )
    return AlphaBetaRule(float(options["stabilizer"]), alpha=alpha, beta=beta)


RULES: dict[str, Callable[[Mapping[str, Any]], Rule]] = {
    "lrp_epsilon": epsilon_rule,
    "lrp_alpha_beta": alpha_beta_rule,
}


def _lrp(name: str) -> Callable[[Problem, Mapping[str, Any]], Tensor]:
    def compute(problem: Problem, options: Mapping[str, Any]) -> Tensor:
        rule = RULES[name](options)
        return _per_part(problem, lambda x, c: propagate(problem.model, x, c, rule, name))

    return compute


def _no_switches(problem: Problem, options: Mapping[str, Any]) -> Tensor:
    name = "deconvolution_no_switches"
    return _per_part(problem, lambda x, c: propagate(problem.model, x, c, NoSwitches(), name))


def _per_part(problem: Problem, explain: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    parts = problem.parts(problem.inputs, problem.target)
    return torch.cat([explain(points, classes).detach() for points, classes in parts])


def _check(name: str) -> Callable[[Problem], None]:
    def check(problem: Problem) -> None:
        found = METHODS[name]
        found.compute(problem, found.resolve({}))

    return check


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "lrp_epsilon",
            "layer-wise relevance propagation, epsilon rule: shares in proportion to contributions",
            f"{BACH}, equation 58",
            _lrp("lrp_epsilon"),
            options=(Option("epsilon", 0.01, (float, int), "stabiliser of the denominators", minimum=0.0),),
            needs=("rectifier",),
            check=_check("lrp_epsilon"),
        ),
        Method(
            "lrp_alpha_beta",
            "layer-wise relevance propagation, positive and negative contributions apart, alpha - beta = 1",
            f"{BACH}, equation 60; today's sign of beta",
            _lrp("lrp_alpha_beta"),
            options=(
                Option("alpha", 2.0, (float, int), "weight of positive contributions", minimum=1.0),
                Option("beta", 1.0, (float, int), "weight of negative contributions", minimum=0.0),
                Option("stabilizer", STABILIZER, (float, int), "stabiliser of the denominators", minimum=0.0),
            ),
            needs=("rectifier",),
            passes=lambda options: 4.0,
            check=_check("lrp_alpha_beta"),
        ),
        Method(
            "deconvolution_no_switches",
            "deconvolution whose max-pools do not remember the winning pixel",
            "Zeiler, Fergus 2014, arXiv:1311.2901, section 2.1, with unpooling that knows no image",
            _no_switches,
            needs=("rectifier",),
            check=_check("deconvolution_no_switches"),
        ),
    )
}
