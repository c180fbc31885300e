"""The estimators: gradients against enumeration, what is counted, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from restudy.errors import ConfigError
from restudy.methods.estimators import GumbelSoftmax, Marginal, RaoBlackwell, Relax, ScoreFunction, TableObjective
from restudy.methods.estimators.gumbel import annealed
from restudy.methods.estimators.relax import conditional_gumbel
from restudy.methods.estimators.sampling import draw, draw_outside, most_probable, outside_mass

N = 40_000
UNBIASED = {
    "reinforce": ScoreFunction(),
    "reinforce2": ScoreFunction(draws=2),
    "plus": ScoreFunction("second_sample"),
    "plus_fresh": ScoreFunction("second_sample", draws=2, fresh=True),
    "nvil": ScoreFunction("learned"),
    "rb1": RaoBlackwell(ScoreFunction(), 1),
    "rb3_two_draws": RaoBlackwell(ScoreFunction(), 3, draws=2),
    "rb2_plus": RaoBlackwell(ScoreFunction("second_sample"), 2),
    "rb2_plus_fresh": RaoBlackwell(ScoreFunction("second_sample", fresh=True), 2),
    "rb2_nvil": RaoBlackwell(ScoreFunction("learned"), 2),
    "rebar": Relax(5, hidden=None),
    "relax": Relax(5, hidden=8),
}


def problem(batch: int):
    """Logits and f of one parameter vector, the same row for every example; f depends on the logits too."""
    torch.manual_seed(0)
    logits = torch.randn(5, dtype=torch.float64).expand(batch, -1).clone().requires_grad_()
    table = torch.randn(5, dtype=torch.float64)
    f = table + 0.3 * torch.sin(logits)
    return logits, torch.log_softmax(logits, 1), TableObjective(f, torch.full((batch,), 0.2, dtype=torch.float64))


def exact() -> torch.Tensor:
    logits, log_q, objective = problem(1)
    return torch.autograd.grad(Marginal(5).surrogate(log_q, objective).sum(), logits)[0][0]


@pytest.mark.parametrize("name", UNBIASED)
def test_unbiased(name: str) -> None:
    estimator = UNBIASED[name].double() if isinstance(UNBIASED[name], Relax) else UNBIASED[name]
    logits, log_q, objective = problem(N)
    loss = estimator.surrogate(log_q, objective, torch.Generator().manual_seed(1))
    rows = torch.autograd.grad(loss.sum(), logits)[0]
    error = rows.std(0) / N**0.5
    assert ((rows.mean(0) - exact()).abs() <= 4.5 * error + 1e-12).all()


def test_everything_summed_is_exact() -> None:
    for inner in (ScoreFunction(), ScoreFunction("second_sample"), ScoreFunction("learned")):
        logits, log_q, objective = problem(4)
        loss = RaoBlackwell(inner, 5).surrogate(log_q, objective, torch.Generator().manual_seed(2))
        rows = torch.autograd.grad(loss.sum(), logits)[0]
        assert torch.allclose(rows, exact().expand(4, -1), atol=1e-14)
    logits, log_q, objective = problem(4)
    fresh = RaoBlackwell(ScoreFunction("second_sample", fresh=True), 5)
    rows = torch.autograd.grad(fresh.surrogate(log_q, objective, torch.Generator().manual_seed(2)).sum(), logits)[0]
    assert not torch.allclose(rows, exact().expand(4, -1))


def test_value_of_the_pseudo_loss_estimates_the_expectation() -> None:
    _, log_q, objective = problem(N)
    expected = float((log_q.exp() * objective.values).sum(1)[0].detach())
    for estimator in (ScoreFunction(), RaoBlackwell(ScoreFunction(), 2), GumbelSoftmax(0.5)):
        found = estimator.surrogate(log_q, objective, torch.Generator().manual_seed(3)).mean()
        assert float(found.detach()) == pytest.approx(expected, abs=0.03)


def test_summing_lowers_the_variance() -> None:
    found = []
    for k in range(5):
        logits, log_q, objective = problem(N)
        loss = RaoBlackwell(ScoreFunction(), k).surrogate(log_q, objective, torch.Generator().manual_seed(4))
        found.append(float(torch.autograd.grad(loss.sum(), logits)[0].var(0).sum()))
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("inner", [GumbelSoftmax(), Relax(5), Marginal(5)])
def test_estimators_with_noise_of_their_own_are_refused(inner: object) -> None:
    with pytest.raises(ConfigError, match="ignores the category|noise of its own"):
        RaoBlackwell(inner, 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScoreFunction("mean"),  # type: ignore[arg-type]
        lambda: ScoreFunction(draws=0),
        lambda: RaoBlackwell(ScoreFunction(), -1),
        lambda: RaoBlackwell(ScoreFunction(), 1, draws=0),
        lambda: GumbelSoftmax(0.0),
    ],
)
def test_nonsense_is_refused(make) -> None:
    with pytest.raises(ConfigError):
        make()


def test_evaluations() -> None:
    plus, fresh = ScoreFunction("second_sample"), ScoreFunction("second_sample", fresh=True)
    counted = [ScoreFunction(), ScoreFunction(draws=2), plus, RaoBlackwell(ScoreFunction(), 1), RaoBlackwell(plus, 5)]
    assert [e.evaluations for e in counted] == [1, 2, 2, 2, 7]
    assert RaoBlackwell(fresh, 5).evaluations == 12
    assert (Marginal(10).evaluations, GumbelSoftmax().evaluations, Relax(5).evaluations) == (10, 1, 3)


def test_counted_evaluations_are_the_ones_made() -> None:
    class Counting(TableObjective):
        made = 0

        def at(self, z: torch.Tensor) -> torch.Tensor:
            self.made += len(z)
            return super().at(z)

    for estimator in UNBIASED.values():
        if isinstance(estimator, Relax):
            continue
        _, log_q, plain = problem(3)
        objective = Counting(plain.values, plain.predicted)
        estimator.surrogate(log_q, objective, torch.Generator())
        assert objective.made == estimator.evaluations


def test_nothing_is_drawn_where_q_is_zero_or_summed() -> None:
    log_q = torch.tensor([[0.5, 0.3, 0.2, 0.0]]).log().expand(2000, -1)
    generator = torch.Generator().manual_seed(5)
    assert int(draw(log_q, 3, generator).max()) == 2
    top = most_probable(log_q, 1)
    outside = draw_outside(log_q, top, 3, generator)
    assert set(outside.flatten().tolist()) == {1, 2}
    assert outside_mass(log_q, top)[0] == pytest.approx(0.5)
    share = float((outside == 1).float().mean())
    assert share == pytest.approx(0.6, abs=0.03)
    leaf = log_q.clone().requires_grad_()
    loss = RaoBlackwell(ScoreFunction(), 4).surrogate(leaf, TableObjective(torch.ones(2000, 4)), generator)
    loss.sum().backward()
    assert torch.isfinite(leaf.grad).all()


def test_ties_go_to_the_lower_index() -> None:
    assert most_probable(torch.zeros(1, 4), 2).flatten().tolist() == [0, 1]


def test_gumbel_draws_follow_q_and_straight_through_is_one_hot() -> None:
    log_q = torch.log_softmax(torch.tensor([1.0, 0.0, -1.0]), 0).expand(20_000, -1)
    weights = GumbelSoftmax(0.3).weights(log_q, torch.Generator().manual_seed(6))
    counts = weights.argmax(1).bincount(minlength=3).numpy()
    assert torch.allclose(weights.amax(1), torch.ones(20_000))
    assert (
        stats.chisquare(counts, log_q[0].exp().double().numpy() / log_q[0].exp().double().sum().item() * 20_000).pvalue
        > 1e-3
    )
    soft = GumbelSoftmax(0.3, hard=False).weights(log_q, torch.Generator().manual_seed(6))
    assert torch.allclose(soft.sum(1), torch.ones(20_000), atol=1e-5) and float(soft.amax(1).min()) < 0.9


def test_gumbel_is_biased_where_f_bends() -> None:
    class Square(TableObjective):
        def relaxed(self, weights: torch.Tensor) -> torch.Tensor:
            return (weights * self.values).sum(1) ** 2

        def at(self, z: torch.Tensor) -> torch.Tensor:
            return super().at(z) ** 2

    logits = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64).expand(N, -1).clone().requires_grad_()
    objective = Square(torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64).expand(N, -1))
    every = Marginal(3).surrogate(torch.log_softmax(logits, 1), objective)
    truth = torch.autograd.grad(every.sum(), logits)[0][0]
    loss = GumbelSoftmax(1.0).surrogate(torch.log_softmax(logits, 1), objective, torch.Generator().manual_seed(7))
    rows = torch.autograd.grad(loss.sum(), logits)[0]
    assert ((rows.mean(0) - truth).abs() > 5 * rows.std(0) / N**0.5).any()


def test_conditional_gumbel_has_the_argmax_and_the_law() -> None:
    log_q = torch.log_softmax(torch.tensor([0.5, 0.0, -1.0, 0.3], dtype=torch.float64), 0).expand(20_000, -1)
    generator = torch.Generator().manual_seed(8)
    b = draw(log_q, 1, generator)[0]
    found = conditional_gumbel(log_q, b, generator)
    assert torch.equal(found.argmax(1), b)
    free = stats.gumbel_r.cdf((found - log_q).numpy())
    assert all(stats.kstest(free[:, i], "uniform").pvalue > 1e-3 for i in range(4))


def test_relax_learns_a_lower_variance() -> None:
    torch.manual_seed(0)
    relax = Relax(5, hidden=16).double()
    optimizer = torch.optim.Adam(relax.parameters(), 0.02)
    losses = []
    generator = torch.Generator().manual_seed(9)
    for _ in range(150):
        _, log_q, objective = problem(200)
        relax.surrogate(log_q, objective, generator)
        optimizer.zero_grad()
        relax.variance_loss.backward()
        optimizer.step()
        losses.append(float(relax.variance_loss.detach()))
    assert np.mean(losses[-20:]) < np.mean(losses[:20])


def test_nvil_learns_its_baseline() -> None:
    predicted = torch.zeros(6, requires_grad=True)
    objective = TableObjective(torch.full((6, 3), 2.0), predicted)
    ScoreFunction("learned").surrogate(torch.full((6, 3), 1 / 3).log(), objective, torch.Generator()).sum().backward()
    assert predicted.grad is not None and torch.allclose(predicted.grad, torch.full((6,), -4.0))


def test_annealing() -> None:
    assert annealed(1.0, 0.5, 0, 0.1) == 1.0
    assert annealed(1.0, 0.5, 2, 0.1) == pytest.approx(np.exp(-1))
    assert annealed(1.0, 0.5, 100, 0.1) == 0.1


def test_same_generator_same_bits() -> None:
    found = []
    for _ in range(2):
        logits, log_q, objective = problem(50)
        loss = RaoBlackwell(ScoreFunction("second_sample"), 2).surrogate(
            log_q, objective, torch.Generator().manual_seed(1)
        )
        found.append(torch.autograd.grad(loss.sum(), logits)[0])
    assert torch.equal(*found)
