"""An encoder-decoder Transformer whose attention heads can be seen, gated and really removed."""

from restudy.methods.transformer.attention import MultiHeadAttention
from restudy.methods.transformer.convert import load_attention, load_transformer
from restudy.methods.transformer.decoding import beam, greedy
from restudy.methods.transformer.model import KINDS, Gates, Kind, Shape, Transformer, remove_heads

__all__ = [
    "KINDS",
    "Gates",
    "Kind",
    "MultiHeadAttention",
    "Shape",
    "Transformer",
    "beam",
    "greedy",
    "load_attention",
    "load_transformer",
    "remove_heads",
]
