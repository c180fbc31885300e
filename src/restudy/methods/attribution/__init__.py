"""Attribution methods: which parts of an input an output of a model depends on.

One contract: inputs (N, C, H, W), a class for each, result (N, C, H, W), signed, same dtype and device,
nothing pooled, nothing scaled, the explained output is the logit. The model comes back exactly as it went
in.

    maps = attribute(model, images, classes, "integrated_gradients", steps=25)
"""

from restudy.methods.attribution.api import applicable, attribute, attribute_many, input_only, methods
from restudy.methods.attribution.passes import NotApplicable
from restudy.methods.attribution.registry import Method, Option, get_method, register

__all__ = [
    "Method",
    "NotApplicable",
    "Option",
    "applicable",
    "attribute",
    "attribute_many",
    "get_method",
    "input_only",
    "methods",
    "register",
]
