"""Importance-weighted bounds on log p(x) from log importance weights (Burda et al. 2016, section 3)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restudy.errors import ConfigError


def importance_bound(log_w: Tensor) -> Tensor:
    """L_k of every image: log (1/k) sum_i w_i, in nats (equation 8); with k = 1 the one-sample ELBO.

    Args:
        log_w: log p(x, h_i) - log q(h_i | x), shape (k, ...).

    Returns:
        Shape (...). The largest weight is taken out of the sum first, so nothing overflows.
    """
    return torch.logsumexp(log_w, 0) - math.log(len(log_w))


def evidence_bound(log_w: Tensor) -> Tensor:
    """The VAE's bound of every image, averaged over k samples, in nats (equation 3): (k, ...) to (...)."""
    return log_w.mean(0)


def bound_of_groups(log_w: Tensor, k: int) -> Tensor:
    """L_k from disjoint groups of k samples each: (K, N) to (K // k, N); samples left over are not used.

    Raises:
        ConfigError: fewer than k samples.
    """
    groups = len(log_w) // k
    if groups < 1:
        raise ConfigError(
            f"L_{k} needs {k} samples, {len(log_w)} are there", remedy="draw more, or ask for a smaller k"
        )
    return importance_bound(log_w[: groups * k].reshape(groups, k, *log_w.shape[1:]).transpose(0, 1))
