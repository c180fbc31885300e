"""What a stage function is given besides its parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restudy.errors import ConfigError
from restudy.results.tables import merge, read_table

if TYPE_CHECKING:
    import pyarrow as pa
    import torch

    from restudy.tracking.live import LiveCurves

Outputs = dict[str, Any]
"""Declared name -> rows of a table (mappings, or columns by name), or dict[str, torch.Tensor] for tensors."""


@dataclass(frozen=True)
class Context:
    """Device, checkpoint folder and upstream outputs of one job.

    Attributes:
        device: `cpu` or `cuda`; pass it to `torch.device`.
        checkpoints: an existing folder under work/, keyed by the fingerprint: what lies there belongs to exactly
            this code, these parameters and data, so a resumed job may trust it.
        tables: upstream Parquet files by table name, matching jobs only.
        weights: upstream safetensors files by name, matching jobs only.
        job: study, preset, stage, shard and fingerprint, which name the job's live curves.
    """

    checkpoints: Path
    device: str = "cpu"
    tables: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    weights: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    job: tuple[str, ...] = ()

    def live(self, seed: int | None = None) -> LiveCurves:
        """Curves to watch while a long training runs: `live.log(step, loss_nats=...)`.

        Sends nothing unless a server is configured (docs/tracking.md), never raises, and is part of no result.
        """
        from restudy.tracking.live import LiveCurves, live_key

        study, preset, stage, shard, fingerprint = self.job or ("none", "none", "none", "none", "none")
        return LiveCurves(live_key(study, preset, stage, shard, fingerprint, seed))

    def table(self, name: str) -> pa.Table:
        """An upstream table, merged over the matching jobs.

        Raises:
            ConfigError: no stage above returns it.
        """
        if name not in self.tables:
            raise ConfigError(
                f"no table {name!r} above this stage", remedy=f"known: {', '.join(self.tables) or 'none'}"
            )
        return merge([read_table(path) for path in self.tables[name]])

    def tensors(self, name: str) -> dict[str, torch.Tensor]:
        """Upstream tensors by key, from all matching jobs, on the CPU.

        Raises:
            ConfigError: no stage above returns them, or two jobs use the same key.
        """
        from safetensors.torch import load_file

        if name not in self.weights:
            raise ConfigError(f"no tensors {name!r} above this stage", remedy=f"known: {', '.join(self.weights)}")
        found: dict[str, torch.Tensor] = {}
        for path in self.weights[name]:
            for key, tensor in load_file(path).items():
                if key in found:
                    raise ConfigError(
                        f"two jobs return a tensor {key!r}", where=str(path), remedy="name the seed in it"
                    )
                found[key] = tensor
        return found
