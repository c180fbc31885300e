"""Importance-weighted autoencoders: bounds on log p(x), their gradient estimators, and what is measured on them.

A model gives log weights, everything else works on those::

    model = DeepGaussianAutoencoder(784, units=(50,), hidden=(200,))
    backward("iwae", model, x, model.draw_noise(10, len(x), generator))       # fills .grad
    estimate_log_likelihood(draw_log_weights(model, x, 500, generator)).log_likelihood
"""

from restudy.methods.importance.bounds import bound_of_groups, evidence_bound, importance_bound
from restudy.methods.importance.gradients import Objective, backward, gradient_weights
from restudy.methods.importance.likelihood import LikelihoodEstimate, draw_log_weights, estimate_log_likelihood
from restudy.methods.importance.linear_gaussian import LinearGaussian
from restudy.methods.importance.models import DeepGaussianAutoencoder
from restudy.methods.importance.signal import Moments, distance, gradient_moments, moments
from restudy.methods.importance.units import active_units, unit_variances

__all__ = [
    "DeepGaussianAutoencoder",
    "LikelihoodEstimate",
    "LinearGaussian",
    "Moments",
    "Objective",
    "active_units",
    "backward",
    "bound_of_groups",
    "draw_log_weights",
    "estimate_log_likelihood",
    "evidence_bound",
    "gradient_moments",
    "gradient_weights",
    "importance_bound",
    "moments",
    "distance",
    "unit_variances",
]
