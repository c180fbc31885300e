"""The arms by name: which estimator each one is, and what it costs in evaluations of f. No task knows them."""

from __future__ import annotations

from collections.abc import Callable

from restudy.errors import ConfigError
from restudy.methods.estimators import GumbelSoftmax, Marginal, RaoBlackwell, Relax, ScoreFunction
from restudy.methods.models import derive_seed
from restudy.studies.rao_blackwell.fitting import Estimator

Build = Callable[[float], Estimator]


def builder(arm: str, categories: int, seed: int) -> Build:
    """A function from the temperature to the estimator of an arm.

    `full` sums all categories, `rb<k>` sums the k likeliest around REINFORCE, `rb<k>_plus` around REINFORCE with a
    second draw (one, shared by the summed part), `reinforce<n>` averages n draws, `reinforce_plus` has a second draw,
    `nvil` a learned baseline and two draws, `gumbel` and `gumbel_soft` relax, `rebar` and `relax` as named.

    Raises:
        ConfigError: an unknown arm.
    """
    plus = ScoreFunction("second_sample")
    table: dict[str, Build] = {
        "full": lambda _: Marginal(categories),
        "rb1": lambda _: RaoBlackwell(ScoreFunction(), 1),
        "rb1_plus": lambda _: RaoBlackwell(plus, 1),
        "rb5_plus": lambda _: RaoBlackwell(plus, 5),
        "reinforce": lambda _: ScoreFunction(),
        "reinforce2": lambda _: ScoreFunction(draws=2),
        "reinforce_plus": lambda _: plus,
        "nvil": lambda _: ScoreFunction("learned", draws=2),
        "gumbel": lambda temperature: GumbelSoftmax(temperature, hard=True),
        "gumbel_soft": lambda temperature: GumbelSoftmax(temperature, hard=False),
        "rebar": lambda _: _relax(categories, None, seed),
        "relax": lambda _: _relax(categories, 128, seed),
    }
    if arm not in table:
        raise ConfigError(f"unknown arm {arm!r}", remedy=f"known: {', '.join(table)}")
    return table[arm]


def _relax(categories: int, hidden: int | None, seed: int) -> Relax:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "control variate"))
        return Relax(categories, hidden=hidden)
