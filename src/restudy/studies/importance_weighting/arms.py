"""Names of training runs and what they say. No torch."""

from __future__ import annotations

import re
from dataclasses import dataclass

from restudy.errors import ConfigError

PATTERN = r"^(vae|iwae|stl|dreg)_k([1-9][0-9]*)(_two_layers)?(_fixed)?(_n([1-9][0-9]*))?$"
THEN = "_then_"


@dataclass(frozen=True)
class Arm:
    """One training run from scratch.

    Attributes:
        objective: gradient estimator, see `restudy.methods.importance.gradients`.
        k: samples for each image.
        layers: stochastic layers, 1 or 2.
        fixed: pixels are drawn once, not anew at every use.
        images: training images, None for all of the preset's.
    """

    objective: str
    k: int
    layers: int = 1
    fixed: bool = False
    images: int | None = None

    @classmethod
    def parse(cls, name: str) -> Arm:
        """Read a name like `iwae_k10` or `vae_k1_two_layers_fixed_n1000`.

        Raises:
            ConfigError: not such a name.
        """
        found = re.match(PATTERN, name)
        if found is None:
            raise ConfigError(f"unknown arm {name!r}", remedy="name it like iwae_k10 or vae_k1_fixed_n1000")
        objective, k, two, fixed, _, images = found.groups()
        return cls(objective, int(k), 2 if two else 1, bool(fixed), int(images) if images else None)

    @property
    def name(self) -> str:
        """The name that `parse` reads."""
        parts = [self.objective, f"k{self.k}", *(["two_layers"] if self.layers == 2 else [])]
        parts += ["fixed"] if self.fixed else []
        return "_".join(parts + ([f"n{self.images}"] if self.images else []))


def parse_swap(name: str) -> tuple[Arm, Arm]:
    """Read `vae_k1_then_iwae_k10`: the run that is continued, and the objective and k of the continuation.

    A run from scratch gives its arm twice.

    Raises:
        ConfigError: not two arms, or two that differ in more than objective and k.
    """
    before, _, after = name.partition(THEN)
    one, other = Arm.parse(before), Arm.parse(after or before)
    if (one.layers, one.fixed, one.images) != (other.layers, other.fixed, other.images):
        raise ConfigError(f"swap {name!r} changes more than the objective", remedy="use one architecture and one data")
    return one, other


def plain_arms(names: set[str], objective: str) -> list[Arm]:
    """Arms of an objective with one layer, resampled pixels and all images, by k."""
    arms = [Arm.parse(name) for name in names if THEN not in name]
    return sorted((arm for arm in arms if arm == Arm(objective, arm.k)), key=lambda arm: arm.k)


def largest_k(names: set[str]) -> int:
    """The largest k of the plain IWAE arms; 1 where there is none."""
    return max((arm.k for arm in plain_arms(names, "iwae")), default=1)
