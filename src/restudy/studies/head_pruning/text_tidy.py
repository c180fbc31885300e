"""Schemas of the real-text track's data tables."""

from __future__ import annotations

import pyarrow as pa

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_IDS = pa.list_(pa.int64())
PARTS = ("train", "held_out")
SIDES = ("source", "target")

# One row a clause pair. Ids of pieces without BOS and EOS; `first` and `last` are the spans of the source words (first
# piece, one behind the last); `relations` is flat: relation, head word, dependent word, and so on.
TEXT_SENTENCES = pa.schema(
    [("part", pa.string()), ("book", pa.string()), ("chapter", pa.int64()), ("verse", pa.int64())]
    + [("unit", pa.int64()), ("source", _IDS), ("target", _IDS), ("first", _IDS), ("last", _IDS), ("relations", _IDS)]
)
TEXT_PIECES = pa.schema([("side", pa.string()), ("piece", pa.int64()), ("text", pa.string()), ("count", pa.int64())])
TEXT_FACTS = pa.schema([_LONG[0], ("name", pa.string()), *_LONG[1:]])
