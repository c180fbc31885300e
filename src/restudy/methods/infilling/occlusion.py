"""Occlusion with any in-filler: a window slides over the image and the fall of the log-odds is noted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.infilling.fillers import Infiller, composite
from restudy.methods.infilling.noise import Noise
from restudy.methods.infilling.objectives import log_odds


@torch.no_grad()
def occlusion(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    infiller: Infiller,
    seeds: Sequence[int],
    *,
    window: int,
    stride: int,
) -> Tensor:
    """Fall of the log-odds when a window is filled in, averaged over the windows that hold a pixel, (N, 1, S, S).

    Zeiler and Fergus 2014; with a conditional in-filler this is prediction difference analysis (Zintgraf et al. 2017)
    with one draw. `window` and `stride` in pixels; windows lie inside the image.

    Raises:
        ConfigError: the window does not fit.
    """
    size = images.shape[-1]
    if not 1 <= window <= size or stride < 1:
        raise ConfigError(f"window {window}, stride {stride}", remedy=f"a window of 1 to {size} pixels, stride above 0")
    noise = Noise(seeds, images.device)
    before = log_odds(model(images), target)
    total, count = torch.zeros_like(images), torch.zeros_like(images)
    starts = list(range(0, size - window + 1, stride))
    for top in starts:
        for left in starts:
            hidden = torch.zeros_like(images)
            hidden[:, :, top : top + window, left : left + window] = 1
            pictures = infiller(images, hidden, noise.normal(*infiller.noise_shape(size)))
            fall = before - log_odds(model(composite(images, pictures, hidden)), target)
            total += hidden * fall[:, None, None, None]
            count += hidden
    return total / count.clamp(min=1)
