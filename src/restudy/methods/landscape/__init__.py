"""Probes of a loss around the weights of any torch model, which leave the model and the random state untouched."""

from restudy.methods.landscape.along import Along, along_gradient, geometric
from restudy.methods.landscape.curvature import curvature_along_gradient, top_eigenvalue
from restudy.methods.landscape.distributions import Histogram, histogram, moments, step_change, wasserstein
from restudy.methods.landscape.probe import Point, Probe
from restudy.methods.landscape.shift import Shift, covariate_shift, layer_parameters

__all__ = [
    "Along",
    "Histogram",
    "Point",
    "Probe",
    "Shift",
    "along_gradient",
    "covariate_shift",
    "curvature_along_gradient",
    "geometric",
    "histogram",
    "layer_parameters",
    "moments",
    "step_change",
    "top_eigenvalue",
    "wasserstein",
]
