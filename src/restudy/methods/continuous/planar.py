"""The planar flow for long training in float32: rounding cannot make its log-determinant undefined."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.methods.continuous.flow import PlanarFlow, normal_log_density


class StablePlanarFlow(PlanarFlow):
    """`PlanarFlow`, the same function and density.

    A layer's determinant is 1 + (1 - h^2) w . u with w . u = softplus(.) - 1 by construction. Computed from u and w in
    float32 the product may come out below -1, and the logarithm undefined; h^2 + (1 - h^2) softplus(.) cannot.
    """

    def push(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Base points (B, D) to samples (B, D) and their log density (B,), nats."""
        log_density = normal_log_density(z, self.scale)
        positive = F.softplus((self.u * self.w).sum(1))
        for u, w, b, least in zip(self.bent(), self.w, self.b, positive, strict=True):
            hidden = torch.tanh(z @ w + b)
            square = hidden.square()
            log_density = log_density - torch.log(square + (1 - square) * least)
            z = z + hidden[:, None] * u
        return z, log_density
