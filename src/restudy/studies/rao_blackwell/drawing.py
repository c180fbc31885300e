"""Names in figures, and means over seeds with their t intervals. No torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from restudy.plotting.style import series
from restudy.studies.rao_blackwell.tidy import where

ARM_NAMES = {
    "full": "all summed",
    "rb1": "RB k=1",
    "rb5_plus": "RB k=5 +",
    "reinforce": "REINFORCE",
    "reinforce2": "REINFORCE x 2",
    "reinforce_plus": "REINFORCE +",
    "rb1_plus": "RB k=1 +",
    "gumbel": "Gumbel-softmax",
    "nvil": "NVIL",
    "relax": "RELAX",
    "rebar": "REBAR",
    "gumbel_soft": "Gumbel, soft",
    "known_place": "place known",
}
"""`+` marks a second draw as baseline."""
LOOKS = series(list(ARM_NAMES))


def arms_of(table: pa.Table) -> list[str]:
    """The arms of a table in the order of `ARM_NAMES`."""
    present = set(table["arm"].to_pylist())
    return [arm for arm in ARM_NAMES if arm in present]


def over_seeds(table: pa.Table, arm: str, metric: str, start: str, minus: str | None = None) -> Any:
    """Epochs, evaluations, mean over seeds and half of its 95% t interval (0 for one seed), of shape (4, epochs).

    `minus`: an arm whose value of the same seed and epoch is subtracted.
    """
    rows = where(table, arm=arm, metric=metric, start=start).sort_by([("epoch", "ascending"), ("seed", "ascending")])
    epochs = np.unique(rows["epoch"].to_numpy())
    values = rows["value"].to_numpy().reshape(len(epochs), -1)
    spent = rows["evaluations"].to_numpy().reshape(len(epochs), -1)[:, 0]
    if minus is not None:
        other = where(table, arm=minus, metric=metric, start=start)
        other = other.sort_by([("epoch", "ascending"), ("seed", "ascending")])
        values = values - other["value"].to_numpy().reshape(len(epochs), -1)
    n = values.shape[1]
    half = np.zeros(len(epochs))
    if n > 1:
        half = stats.t.ppf(0.975, n - 1) * values.std(axis=1, ddof=1) / np.sqrt(n)
    return np.stack([epochs, spent, values.mean(1), half])


def mean_over_seeds(values: dict[int, float]) -> float:
    """Mean of the replicates."""
    return float(np.mean(list(values.values())))
