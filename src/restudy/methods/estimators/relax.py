"""REBAR (Tucker et al. 2017) and RELAX (Grathwohl et al. 2018) for a categorical variable."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from restudy.methods.estimators.objective import Objective
from restudy.methods.estimators.sampling import gumbel_like

TEMPERATURES = (0.01, 5.0)


class Relax(nn.Module):
    """(f(b) - c(z~)) d log q(b) + d c(z) - d c(z~), z = log q + Gumbel noise, b = argmax z, z~ ~ z given b.

    The control variate is c(z) = f(softmax(z / temperature)) + c_phi(z): without `hidden` c_phi is 0 and this is
    REBAR with weight 1; with it c_phi is an MLP K-hidden-hidden-1. Temperature (kept within [.01, 5]) and c_phi are
    parameters of this module; `variance_loss` of the last call is the squared norm of the estimated gradient with
    regard to log q, whose mean differs from the variance by a constant: minimise it over these parameters alone.
    """

    own_noise = True
    evaluations = 3

    def __init__(self, categories: int, *, hidden: int | None = 128, temperature: float = 0.5) -> None:
        super().__init__()
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)))
        self.control: nn.Module | None = None
        if hidden is not None:
            self.control = nn.Sequential(
                nn.Linear(categories, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
            )
        self.variance_loss = torch.zeros(())

    def surrogate(self, log_q: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
        """Pseudo-loss (B,) for the parameters of q and f; sets `variance_loss` (a scalar) for this module's own.

        Args:
            log_q: log probabilities (B, K), with their graph.
            objective: f, with its relaxation.
            generator: for both noises.
        """
        leaf = log_q.detach().requires_grad_()
        z = leaf + gumbel_like(tuple(leaf.shape), leaf, generator)
        b = z.argmax(1)
        conditional = conditional_gumbel(leaf, b, generator)
        f = objective.at(b[None])[0]
        c_free, c_given = self._control(z, objective), self._control(conditional, objective)
        score = torch.zeros_like(leaf).scatter(1, b[:, None], 1.0)
        (difference,) = torch.autograd.grad((c_free - c_given).sum(), leaf, create_graph=True)
        gradient = (f.detach() - c_given)[:, None] * score + difference
        # d log q as logits of a softmax: the part along the probabilities' sum is no direction of q
        projected = gradient - log_q.detach().exp() * gradient.sum(1, keepdim=True)
        self.variance_loss = (projected**2).sum(1).mean()
        moved = (gradient.detach() * (log_q - log_q.detach())).sum(1)
        return f + moved

    def _control(self, z: Tensor, objective: Objective) -> Tensor:
        low, high = TEMPERATURES
        weights = (z / self.log_temperature.exp().clamp(low, high)).softmax(1)
        value = objective.relaxed(weights)
        return value if self.control is None else value + self.control(z).squeeze(1)


def conditional_gumbel(log_q: Tensor, b: Tensor, generator: torch.Generator) -> Tensor:
    """z~ ~ (log q + Gumbel noise) given that its argmax is b, reparametrised in log q; (B, K) (Tucker 2017, app. C).

    The largest is a standard Gumbel (log q is normalised), the others are Gumbels cut off below it.
    """
    noise = gumbel_like(tuple(log_q.shape), log_q, generator)
    top = noise.gather(1, b[:, None])  # -log(-log v_b)
    others = -torch.logaddexp(-(log_q + noise), -top)
    return others.scatter(1, b[:, None], top)
