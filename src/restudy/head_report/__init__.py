"""The heads of a model of your own: what they look at, how much they matter, and the model with fewer of them."""

from restudy.head_report.adapters import Attention, find_attention, remove_heads
from restudy.head_report.inspect import Options, Report, inspect_heads, restore

__all__ = ["Attention", "Options", "Report", "find_attention", "inspect_heads", "remove_heads", "restore"]
