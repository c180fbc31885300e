"""Gradient estimators of the bounds: VAE, IWAE, STL and DReG.

All of them weigh the gradients of the k log weights and differ in the weights and in what passes through log q:

==== ======================= ======================== =====================================================
name weights, encoder        weights, decoder         source
==== ======================= ======================== =====================================================
vae  1/k                     1/k                      Kingma and Welling 2014
iwae w~                      w~                       Burda et al. 2016, equation 14
stl  w~, path only           w~                       Roeder et al. 2017, section 4.1; biased for k > 1
dreg w~ squared, path only   w~                       Tucker et al. 2019, equation 8; unbiased
==== ======================= ======================== =====================================================

w~ are the normalised importance weights, taken as constants. "Path only": the parameters of the density log q are held
fixed, the gradient reaches them through the samples.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.importance.bounds import evidence_bound, importance_bound
from restudy.methods.importance.models import DeepGaussianAutoencoder, Noise

Objective = Literal["vae", "iwae", "stl", "dreg"]
PATH_ONLY = frozenset({"stl", "dreg"})


def check_objective(objective: str) -> None:
    """Refuse (ConfigError) a name that is no estimator."""
    if objective not in get_args(Objective):
        raise ConfigError(f"unknown objective {objective!r}", remedy=f"known: {', '.join(get_args(Objective))}")


def gradient_weights(objective: Objective, log_w: Tensor, part: Literal["encoder", "decoder"]) -> Tensor:
    """The constant weight of every log weight's gradient, (k, ...) as `log_w`; see the table above."""
    check_objective(objective)
    fixed = log_w.detach()
    if objective == "vae":
        return torch.full_like(fixed, 1 / len(fixed))
    normalised = torch.softmax(fixed, 0)
    return normalised**2 if objective == "dreg" and part == "encoder" else normalised


def backward(objective: Objective, model: DeepGaussianAutoencoder, x: Tensor, noise: Noise) -> Tensor:
    """Add the gradient of minus the bound, averaged over the images, to the parameters' `.grad`.

    Args:
        objective: the estimator.
        model: its parameters receive the gradient.
        x: binary images (B, pixels).
        noise: one tensor (k, B, units) for each stochastic layer.

    Returns:
        The bound of every image in nats, (B,), without a graph: the ELBO for `vae`, else L_k.
    """
    log_w = model.log_weights(x, noise, path_only=objective in PATH_ONLY)

    def loss(part: Literal["encoder", "decoder"]) -> Tensor:
        return -(gradient_weights(objective, log_w, part) * log_w).sum(0).mean()

    if objective == "dreg":
        encoder, decoder = model.encoder_parameters(), model.decoder_parameters()
        loss("encoder").backward(inputs=encoder, retain_graph=True)  # type: ignore[no-untyped-call]
        loss("decoder").backward(inputs=decoder)  # type: ignore[no-untyped-call]
    else:
        loss("encoder").backward()  # type: ignore[no-untyped-call]
    fixed = log_w.detach()
    return evidence_bound(fixed) if objective == "vae" else importance_bound(fixed)
