"""Models that the papers share, and the order in which their layers can be re-initialised."""

from restudy.methods.models.initializers import Initializer, derive_seed, initialize_module
from restudy.methods.models.layers import Layer, find_layer, layers_top_down
from restudy.methods.models.small import MLP, SmallCNN

__all__ = [
    "MLP",
    "Initializer",
    "Layer",
    "SmallCNN",
    "derive_seed",
    "find_layer",
    "initialize_module",
    "layers_top_down",
]
