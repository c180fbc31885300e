"""The two tracks: a drawn language (`synthetic`), and real parallel text (`text`), whose tables start with `text_`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.studies.head_pruning import corpus
from restudy.studies.head_pruning.corpus import Corpus

Setup = Mapping[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Track:
    """What a stage reads and returns, under the names of its track.

    Attributes:
        context: of the job. name: `synthetic` or `text`.
    """

    context: Context
    name: str

    @property
    def prefix(self) -> str:
        """What the names of tables and tensors start with."""
        return "" if self.name == "synthetic" else f"{self.name}_"

    def table(self, name: str) -> pa.Table:
        """A table of this track from a stage above."""
        return self.context.table(self.prefix + name)

    def setups(self, seeds: Sequence[int]) -> list[Setup]:
        """The rows of `setup` for these seeds."""
        rows = {row["seed"]: row for row in self.table("setup").to_pylist()}
        return [rows[seed] for seed in seeds]

    def arms(self) -> list[str]:
        """The unpruned models that were trained."""
        return sorted(set(self.table("training")["arm"].to_pylist()))

    def corpus(self, setup: Setup) -> Corpus:
        """The data of a row of `setup`."""
        sizes = [int(setup[name]) for name in ("sentences", "held_out", "batch_tokens")]
        if self.name == "synthetic":
            return corpus.draw(int(setup["seed"]), *sizes)
        return corpus.read(self.context.table("text_sentences"), self.context.table("text_pieces"), *sizes)

    def weights(self, name: str, start: str) -> dict[str, Tensor]:
        """The tensors of a stage above whose keys start so, without that start."""
        stored = self.context.tensors(self.prefix + name)
        return {key.removeprefix(start): value for key, value in stored.items() if key.startswith(start)}

    def outputs(self, rows: Mapping[str, Sequence[Row]], schemas: Mapping[str, pa.Schema]) -> Outputs:
        """Tables of rows under this track's names."""
        return {
            self.prefix + name: pa.Table.from_pylist(list(found), schema=schemas[name]) for name, found in rows.items()
        }
