"""Pruning of attention heads: Hard Concrete gates with an L0 penalty, and masks to compare with."""

from restudy.methods.pruning.gates import HeadGates
from restudy.methods.pruning.hard_concrete import (
    HardConcrete,
    cumulative,
    deterministic_gate,
    gate_moments,
    probability_one,
    probability_open,
    sample_gate,
)
from restudy.methods.pruning.masks import keep_highest, random_mask

__all__ = [
    "HardConcrete",
    "HeadGates",
    "cumulative",
    "deterministic_gate",
    "gate_moments",
    "keep_highest",
    "probability_one",
    "probability_open",
    "random_mask",
    "sample_gate",
]
