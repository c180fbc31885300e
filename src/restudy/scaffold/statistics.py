"""One number per replicate: contrasts of the results tables. Positive is the paper's direction."""

from __future__ import annotations

from functools import partial

from restudy.contrasts import mean

steps = partial(mean, "steps", metric="steps")
log_steps = partial(mean, "steps", metric="log_steps")

plain_minus_momentum_log_steps = log_steps(method="plain") - log_steps(method="momentum")
zero_momentum_deviation = steps(method="plain") - steps(method="zero")
