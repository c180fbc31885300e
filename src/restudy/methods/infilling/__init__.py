"""Explanations by counterfactual in-filling: which region, replaced by something plausible, changes the class.

    masks = fido(model, images, classes, Generative(net), [50 / 784], seeds)     # smallest deletion regions
    masks.saliency(28)                                                           # (1, N, 1, 28, 28)

In-fillers stand in `fillers`, their training in `fitting`, measures of maps in `regions`, of fills in `quality`.
"""

from restudy.methods.infilling.fillers import (
    Blur,
    Constant,
    Generative,
    Infiller,
    Known,
    Local,
    RandomColour,
    Regression,
    composite,
)
from restudy.methods.infilling.fitting import fit_gan, fit_regression, fit_vae
from restudy.methods.infilling.noise import Noise
from restudy.methods.infilling.objectives import log_odds
from restudy.methods.infilling.occlusion import occlusion
from restudy.methods.infilling.optimise import Masks, Settings, bbmp, fido

__all__ = [
    "Blur",
    "Constant",
    "Generative",
    "Infiller",
    "Known",
    "Local",
    "Masks",
    "Noise",
    "RandomColour",
    "Regression",
    "Settings",
    "bbmp",
    "composite",
    "fido",
    "fit_gan",
    "fit_regression",
    "fit_vae",
    "log_odds",
    "occlusion",
]
