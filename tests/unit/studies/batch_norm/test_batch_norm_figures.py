"""Figures from tables, without torch, the same bytes twice."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from batch_norm_tables import everything

from restudy.catalog import study

DRAW = """
import importlib, pickle, sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from restudy.plotting.save import figure_bytes
tables, functions = pickle.load(open(sys.argv[1], "rb"))
for function in functions:
    module, _, name = function.partition(".")
    draw = getattr(importlib.import_module(f"restudy.studies.batch_norm.{module}"), name)
    assert figure_bytes(draw(tables)) == figure_bytes(draw(tables)), function
assert "torch" not in sys.modules
"""


def test_figures_without_torch(tmp_path: Path) -> None:
    functions = [figure.function for figure in study("batch_norm").file.figures.values()]
    path = tmp_path / "tables.pkl"
    path.write_bytes(pickle.dumps((everything(), functions)))
    done = subprocess.run([sys.executable, "-c", DRAW, str(path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
