"""Internal covariate shift measured by gradients (Santurkar et al. 2018, definition 2.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from torch import nn

from restudy.errors import ConfigError
from restudy.methods.landscape.probe import Point, Probe, dot, minus, norm


@dataclass(frozen=True)
class Shift:
    """Change of one layer's gradient when the layers below have taken their step: ||G - G'||, cosine, ||G||."""

    layer: str
    l2: float
    cosine: float
    gradient_norm: float


def covariate_shift(
    probe: Probe,
    layers: Mapping[str, Sequence[str]],
    rate: float,
    *,
    measured: Sequence[str] | None = None,
    weights: Mapping[str, Sequence[str]] | None = None,
    start: Point | None = None,
) -> list[Shift]:
    """Compare each layer's gradient with the one it would get after all lower layers took an SGD step.

    G is the gradient on the batch at the current weights; G' the gradient on the same batch, with the same noise,
    when every parameter of the lower layers (gamma and beta among them) has moved by -rate times its gradient and
    this layer and those above have not. Costs one pass forward and back for each layer measured.

    Args:
        layers: names of each layer's parameters, lowest layer first, e.g. `layer_parameters(model, [...])`.
        rate: learning rate of the step. measured: layers to report, all by default; the first has no lower layers,
            so its cosine is 1. weights: parameters whose gradient is compared, all of the layer's by default.
        start: loss and gradient at the current weights, if known already.

    Raises:
        ConfigError: a layer or a parameter that is not known.
    """
    order = list(layers)
    wanted = order if measured is None else list(measured)
    compared = layers if weights is None else weights
    unknown = [name for name in wanted if name not in layers or name not in compared]
    unknown += [n for names in (*layers.values(), *compared.values()) for n in names if n not in probe.weights]
    if unknown:
        raise ConfigError(f"not known: {', '.join(unknown)}", where="covariate_shift", remedy="see named_parameters()")
    start = probe.point() if start is None else start
    found = []
    for name in wanted:
        lower = [n for below in order[: order.index(name)] for n in layers[below]]
        after = probe.point(probe.moved(start.gradient, rate, only=lower)).gradient
        one, two = ({n: gradient[n] for n in compared[name]} for gradient in (start.gradient, after))
        lengths = norm(one) * norm(two)
        cosine = dot(one, two) / lengths if lengths > 0 and math.isfinite(lengths) else math.nan
        found.append(Shift(name, norm(minus(one, two)), max(-1.0, min(1.0, cosine)), norm(one)))
    return found


def layer_parameters(model: nn.Module, modules: Iterable[str]) -> dict[str, list[str]]:
    """Return the names of the parameters of each named module, for `covariate_shift`.

    Raises:
        ConfigError: a module that does not exist or has no parameters.
    """
    known, found = dict(model.named_modules()), {}
    for name in modules:
        if name not in known or not (own := [f"{name}.{n}" for n, _ in known[name].named_parameters()]):
            raise ConfigError(f"module {name!r} does not exist or has no parameters", where="layer_parameters")
        found[name] = own
    return found
