"""Supervised training that can be killed and resumed without changing the result."""

from restudy.methods.training.checkpoint import load_checkpoint, save_checkpoint
from restudy.methods.training.memory import keep_freed_memory
from restudy.methods.training.resumable import Resumable
from restudy.methods.training.supervised import Epoch, History, evaluate, train_classifier

__all__ = [
    "Epoch",
    "History",
    "Resumable",
    "evaluate",
    "keep_freed_memory",
    "load_checkpoint",
    "save_checkpoint",
    "train_classifier",
]
