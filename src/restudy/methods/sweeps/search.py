"""Quasi-random search: scrambled Sobol points in a box (SciPy), the same box and points for every batch size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from restudy.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """The searched range of one hyper-parameter, on a log or a linear scale."""

    low: float
    high: float
    scale: Literal["log", "linear"] = "log"

    def check(self, name: str) -> None:
        """Raise ConfigError for ends in the wrong order, or a log scale that touches 0."""
        if not self.low < self.high or (self.scale == "log" and self.low <= 0):
            raise ConfigError(
                f"{name} is searched from {self.low:g} to {self.high:g}", remedy="give low < high, above 0 if log"
            )

    def at(self, share: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The values at these shares of the range, 0 to 1."""
        if self.scale == "log":
            found: npt.NDArray[np.float64] = np.exp(np.log(self.low) + share * np.log(self.high / self.low))
            return found
        return self.low + share * (self.high - self.low)


def sobol(box: Mapping[str, Range], trials: int, seed: int) -> dict[str, npt.NDArray[np.float64]]:
    """Return `trials` scrambled Sobol points of the box: name -> float64 (trials,).

    Each coordinate alone is stratified too, so a search over the first of two can take its column: both searches then
    share its values. A power of two of trials keeps the sequence balanced. Raises ConfigError for an empty box, a wrong
    range or no trials.
    """
    if not box or trials < 1:
        raise ConfigError(f"{trials} trials over {len(box)} hyper-parameters", remedy="give at least one of each")
    for name, one in box.items():
        one.check(name)
    sampler = qmc.Sobol(len(box), scramble=True, rng=np.random.default_rng(seed))
    # Drawn as a power of two and cut, which spares SciPy's warning about balance.
    shares = sampler.random_base2(int(np.ceil(np.log2(max(trials, 2)))))[:trials]
    return {name: one.at(shares[:, i]) for i, (name, one) in enumerate(box.items())}
