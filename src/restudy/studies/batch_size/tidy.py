"""Names of the workloads, and schemas of the study's tables."""

from __future__ import annotations

import pyarrow as pa

SGD, MOMENTUM = "fashion-mlp64-sgd", "fashion-mlp64-momentum"
DIGITS, CONVEX = "mnist5k-mlp64-sgd", "fashion-softmax-sgd"
NARROW, DEEP, HALF = "fashion-mlp32-momentum", "fashion-mlp128x3-momentum", "fashion_half-mlp64-momentum"
KINDS = ("search", "rerun", "frozen", "linear", "square_root")
"""How a trial was chosen: by the search; the best trial again; the best of the smallest batch again; by a rule."""

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_WHERE = [("workload", pa.string()), ("seed", pa.int64())]
_TRIAL = [("kind", pa.string()), ("batch_size", pa.int64()), ("trial_id", pa.int64())]
MEASUREMENTS = pa.schema(
    [*_WHERE, *_TRIAL, ("step", pa.int64()), ("status", pa.string())]
    + [("validation_error", pa.float64()), ("test_error", pa.float64()), ("train_loss", pa.float64())]
)
TRIALS = pa.schema(
    [*_WHERE, *_TRIAL, ("learning_rate", pa.float64()), ("momentum", pa.float64())]
    + [("effective_learning_rate", pa.float64()), ("status", pa.string()), ("step_budget", pa.int64()), *_LONG]
)
BOXES = pa.schema([*_WHERE, ("metric", pa.string()), ("low", pa.float64()), ("high", pa.float64())])
NOISE = pa.schema(
    [*_WHERE, ("batch_size", pa.int64()), ("step", pa.int64()), ("small_batch", pa.int64()), ("big_batch", pa.int64())]
    + _LONG
)
IDENTITIES = pa.schema([("claim", pa.string()), ("case", pa.string()), *_LONG])
TIMINGS = pa.schema([("seed", pa.int64()), ("batch_size", pa.int64()), *_LONG])
