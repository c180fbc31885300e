"""Which pixels speak for a decision: layer-wise relevance propagation beside `restudy.methods.attribution`.

`attribute` here takes every method of `restudy.methods.attribution.attribute`, by delegation, and the three that this
package adds: `lrp_epsilon`, `lrp_alpha_beta`, `deconvolution_no_switches`. Contract and errors are the same:
(N, C, H, W), signed, nothing pooled. `heatmaps` pools the channels as Samek et al. 2017 do: `sensitivity` is a norm of
the gradient, relevance is summed.

    maps = attribute(model, images, classes, "lrp_alpha_beta", alpha=2, beta=1)
    heatmaps(model, images, classes, ["sensitivity", "sensitivity_linf", "deconvolution", "lrp_epsilon"])

The model's own code is followed, so it need not be built of particular modules: batch norms are folded into the
convolution before them, ReLU and ReLU6 hand relevance through, residual sums and average pools share it in proportion,
max-pools give it to the winner. What has no rule is refused by name (`NotApplicable`).
"""

from restudy.methods.attribution.passes import NotApplicable
from restudy.methods.relevance.api import (
    HEATMAPS,
    Heatmap,
    applicable,
    attribute,
    attribute_many,
    heatmap,
    heatmaps,
    methods,
    pooled,
)
from restudy.methods.relevance.conservation import Conservation, conservation

__all__ = [
    "HEATMAPS",
    "Conservation",
    "Heatmap",
    "NotApplicable",
    "applicable",
    "attribute",
    "attribute_many",
    "conservation",
    "heatmap",
    "heatmaps",
    "methods",
    "pooled",
]
