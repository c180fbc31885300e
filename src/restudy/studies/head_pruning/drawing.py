"""Shared parts of the study's figures. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import COLOURS
from restudy.studies.head_pruning.measures import grid
from restudy.studies.head_pruning.tidy import Array, Mask, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARM_NAMES = {"relative": "relative positions", "sinusoid": "sinusoids alone", "untrained": "untrained"}
FUNCTION_LOOKS = {
    "none": ("#7F7F7F", "no function found"),
    "positional": ("#0072B2", "positional"),
    "syntactic": ("#D55E00", "syntactic"),
    "both": ("#009E73", "both"),
}
KIND_NAMES = {"encoder": "encoder", "decoder": "decoder", "cross": "cross"}


def metric_grid(table: pa.Table, arm: str, metric: str, seed: int) -> Array:
    """A metric of the encoder's heads, (layers, heads)."""
    return grid(where(table, arm=arm, kind="encoder", metric=metric, seed=seed))


def heat_map(axis: Axes, values: Array, low: float, high: float) -> Any:
    """Layers from bottom to top, heads from left to right."""
    image = axis.imshow(values, vmin=low, vmax=high, cmap="viridis", aspect="auto", origin="lower")
    axis.set_yticks(range(len(values)), [str(n + 1) for n in range(len(values))])
    axis.set_xticks([])
    axis.grid(False)
    return image


def dots(axis: Axes, place: float, values: list[float], colour: str = "black") -> None:
    """The seeds' values beside their bar."""
    spread = np.linspace(-0.12, 0.12, len(values)) if len(values) > 1 else np.zeros(1)
    axis.plot(place + spread, values, ".", color=colour, markersize=3, zorder=3)


def role_names(functions: dict[str, Mask]) -> np.ndarray[Any, np.dtype[np.str_]]:
    """Function of each head, a key of `FUNCTION_LOOKS`, (layers, heads)."""
    positional, syntactic = functions["positional"], functions["syntactic"]
    return np.where(
        positional & syntactic, "both", np.where(positional, "positional", np.where(syntactic, "syntactic", "none"))
    )


def layer_colour(layer: int) -> str:
    """The colour of a layer."""
    return COLOURS[layer % len(COLOURS)]
