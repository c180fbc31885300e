"""Confidence, positional roles and importance of the heads of any torch model, and pruning to a budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
import torch.nn.functional as F
from safetensors.torch import save as tensor_bytes
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.head_report.adapters import Attention, find_attention, observing, remove_heads, shut
from restudy.head_report.page import head_figure, page
from restudy.heads.observe import confidence, offset_hits
from restudy.plotting.save import figure_bytes
from restudy.results import table_bytes, write_atomically

HEADS = pa.schema(
    [("module", pa.string()), ("head", pa.int64()), ("metric", pa.string()), ("value", pa.float64())]
    + [("unit", pa.string())]
)
OFFSETS = range(-3, 4)
Batch = dict[str, Tensor]


@dataclass(frozen=True)
class Options:
    """How a model is looked at and pruned.

    Attributes:
        batch_size: examples in a forward pass. loss: `cross_entropy` (outputs (..., C), targets int64 (...), -100 is
            left out) or `mse`. keep: how many heads stay, a share below 1 or a count; None prunes nothing. rounds: in
            how many rounds heads are taken away, importance being measured anew for each. device: where it runs.
    """

    batch_size: int = 32
    loss: str = "cross_entropy"
    keep: float | None = None
    rounds: int = 4
    device: str = "cpu"

    def check(self) -> None:
        """Raise ConfigError, in one line, for what makes no sense."""
        checks = [
            (self.batch_size >= 1, "batch_size", self.batch_size, "at least 1"),
            (self.loss in ("cross_entropy", "mse"), "loss", self.loss, "cross_entropy, mse"),
            (
                self.keep is None or 0 < self.keep < 1 or (self.keep >= 1 and float(self.keep).is_integer()),
                *("keep", self.keep, "a share between 0 and 1, or a whole number"),
            ),
            (self.rounds >= 1, "rounds", self.rounds, "at least 1"),
        ]
        for fine, name, value, allowed in checks:
            if not fine:
                raise ConfigError(f"{name} is {value!r}", where="heads", remedy=f"allowed: {allowed}")


@dataclass
class Report:
    """What was found: rows of `heads`, unsupported modules with reasons, losses, and the heads that stay by module."""

    heads: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    kept: dict[str, list[int]] = field(default_factory=dict)


def inspect_heads(model: nn.Module, data: Mapping[str, Tensor], folder: Path, options: Options | None = None) -> Report:
    """Measure every attention head of a model, prune it where asked, and write tables, a page and the pruned model.

    Args:
        model: any module with `nn.MultiheadAttention` inside, or a model of `transformers` with eager attention.
        data: `targets` and either `inputs`, given as the only argument, or named arguments of the model; all with the
            examples first. `lengths` (N,), where given, says how many tokens of each are looked at (EOS and padding
            out).
        folder: gets heads.parquet, heads.svg, .png, .pdf and index.html; and, where heads were removed, kept.json and
            pruned.safetensors (load them with `restudy.head_report.restore`). Made if absent.

    The model is left in evaluation mode and, where `keep` is given, with its heads removed.

    Raises:
        ConfigError: no attention that is known, data that do not fit, a budget larger than the model.
    """
    options = options or Options()
    options.check()
    model.to(options.device).eval()
    attentions, refused = find_attention(model)
    if not attentions:
        named = "; ".join(f"{name}: {why}" for name, why in refused.items()) or "no attention module found"
        raise ConfigError(named, where="heads", remedy="a model with torch.nn.MultiheadAttention is needed")
    batches = list(_batches(data, options))
    report = Report(refused=refused)
    report.losses["all heads"] = mean_loss(model, batches, options)
    _observe(model, attentions, batches, report)
    slopes = gradients(model, attentions, batches, options)
    for attention in attentions:
        for head in range(attention.heads):
            with shut(attention, [head]):
                rise = mean_loss(model, batches, options) - report.losses["all heads"]
            _add(report, attention, head, "ablation", rise, "nats" if options.loss == "cross_entropy" else "1")
            _add(report, attention, head, "gradient", float(slopes[attention.name][head]), "1")
    if options.keep is not None:
        report.kept = choose(model, attentions, batches, options)
        remove_heads(model, report.kept)
        report.losses["pruned"] = mean_loss(model, batches, options)
    _write(model, report, folder, options)
    return report


def restore(model: nn.Module, folder: Path) -> nn.Module:
    """A model built anew, with the heads and weights that `inspect_heads` left in a folder."""
    from safetensors.torch import load_file

    remove_heads(model, json.loads((folder / "kept.json").read_text()))
    model.load_state_dict(load_file(folder / "pruned.safetensors"))
    return model.eval()


def _batches(data: Mapping[str, Tensor], options: Options) -> Iterator[Batch]:
    sizes = {name: len(values) for name, values in data.items()}
    if "targets" not in data or len(data) < 2 or len(set(sizes.values())) != 1:
        raise ConfigError(
            f"data hold {sizes}",
            where="heads",
            remedy="give `targets` and `inputs` (or named arguments), one an example",
        )
    for start in range(0, next(iter(sizes.values())), options.batch_size):
        yield {n: values[start : start + options.batch_size].to(options.device) for n, values in data.items()}


def _outputs(model: nn.Module, batch: Batch) -> Tensor:
    named = {name: values for name, values in batch.items() if name not in ("targets", "lengths")}
    found = model(named["inputs"]) if set(named) == {"inputs"} else model(**named)
    found = getattr(found, "logits", found)
    outputs: Tensor = found[0] if isinstance(found, tuple) else found
    return outputs


def _loss(model: nn.Module, batch: Batch, options: Options) -> Tensor:
    outputs, targets = _outputs(model, batch), batch["targets"]
    if options.loss == "mse":
        return F.mse_loss(outputs, targets)
    if outputs.shape[:-1] != targets.shape:
        raise ConfigError(
            f"outputs of shape {tuple(outputs.shape)} do not fit targets of shape {tuple(targets.shape)}",
            where="heads", remedy="classes stand last; or use --loss mse",
        )  # fmt: skip
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())


@torch.no_grad()
def mean_loss(model: nn.Module, batches: list[Batch], options: Options) -> float:
    """Mean over batches, weighted by their examples."""
    sizes = [len(batch["targets"]) for batch in batches]
    total = sum(float(_loss(model, batch, options)) * size for batch, size in zip(batches, sizes, strict=True))
    return total / sum(sizes)


def gradients(
    model: nn.Module, attentions: list[Attention], batches: list[Batch], options: Options
) -> dict[str, Tensor]:
    """Mean over batches of |d loss / d gate| for a gate of 1 on each head's output (Michel and others 2019), by module.

    A gate multiplies the head's columns of the output projection, so its slope is their product with their gradient.
    """
    weights = [attention.out.weight for attention in attentions]
    states = [(weight, weight.requires_grad) for weight in weights]
    found = {attention.name: torch.zeros(attention.heads) for attention in attentions}
    try:
        for weight in weights:
            weight.requires_grad_(True)
        for batch in batches:
            slopes = torch.autograd.grad(_loss(model, batch, options), weights, allow_unused=True)
            for attention, slope in zip(attentions, slopes, strict=True):
                if slope is not None:
                    product = slope.view_as(attention.columns()) * attention.columns().detach()
                    found[attention.name] += product.sum((0, 2)).abs().cpu() / len(batches)
    finally:
        for weight, state in states:
            weight.requires_grad_(state)
    return found


def choose(
    model: nn.Module, attentions: list[Attention], batches: list[Batch], options: Options
) -> dict[str, list[int]]:
    """Heads that stay: the least important by gradient go, in rounds, until the budget is met; the weights come back.

    Raises:
        ConfigError: a budget above the number of heads.
    """
    total = sum(attention.heads for attention in attentions)
    keep = options.keep or 0.0
    budget = round(keep * total) if 0 < keep < 1 else int(keep)
    if budget > total:
        raise ConfigError(f"keep {budget} of {total} heads", where="heads", remedy=f"allowed: 0 to {total}")
    left = {(i, head) for i, attention in enumerate(attentions) for head in range(attention.heads)}
    stored = [attention.out.weight.detach().clone() for attention in attentions]
    try:
        for round_ in range(options.rounds):
            goal = budget + (total - budget) * (options.rounds - 1 - round_) // options.rounds
            slopes = gradients(model, attentions, batches, options)
            order = sorted(left, key=lambda place: (float(slopes[attentions[place[0]].name][place[1]]), place))
            for i, head in order[: len(left) - goal]:
                left.discard((i, head))
                with torch.no_grad():
                    attentions[i].columns()[:, head] = 0.0
    finally:
        with torch.no_grad():
            for attention, weight in zip(attentions, stored, strict=True):
                attention.out.weight.copy_(weight)
    return {a.name: sorted(head for j, head in left if j == i) for i, a in enumerate(attentions)}


@torch.no_grad()
def _observe(model: nn.Module, attentions: list[Attention], batches: list[Batch], report: Report) -> None:
    """Confidence of all heads, and shares of offsets where queries and keys are the same tokens."""
    sums: dict[str, Tensor] = {}
    queries: dict[str, float] = {}
    seen: dict[str, Tensor] = {}
    for batch in batches:
        seen.clear()
        with observing(attentions, lambda name, weights: seen.__setitem__(name, weights.float())):
            _outputs(model, batch)
        for name, weights in seen.items():
            rows, count = _counts(weights, batch.get("lengths"))
            sums[name] = sums[name] + rows if name in sums else rows
            queries[name] = queries.get(name, 0.0) + count
    for attention in attentions:
        if attention.name not in sums:
            report.refused[attention.name] = "its weights were not seen in a forward pass"
            continue
        for head, row in enumerate(sums[attention.name].tolist()):
            _add(report, attention, head, "confidence", row[0] / queries[attention.name], "1")
            for offset, (hits, fits) in zip(OFFSETS, zip(row[1::2], row[2::2], strict=True), strict=False):
                _add(report, attention, head, f"offset {offset:+d}", hits / max(fits, 1.0), "1")


def _counts(weights: Tensor, lengths: Tensor | None) -> tuple[Tensor, float]:
    """By head (H, 1 or 1 + 2 offsets): summed confidence, then hits and cases of every offset; and the queries."""
    batch, heads, size, keys = weights.shape
    if size != keys:
        return weights.amax(3).double().sum((0, 2)).view(heads, 1).cpu(), float(batch * size)
    own = torch.full((batch,), size, device=weights.device) if lengths is None else lengths
    total, count = confidence(weights, own)
    rows = [torch.from_numpy(total)]
    for offset in OFFSETS:
        hits, fits = offset_hits(weights, own, offset)
        rows += [torch.from_numpy(hits.sum(0)), torch.full((heads,), float(fits.sum()), dtype=torch.float64)]
    return torch.stack(rows, 1), float(count)


def _add(report: Report, attention: Attention, head: int, metric: str, value: float, unit: str) -> None:
    report.heads.append({"module": attention.name, "head": head, "metric": metric, "value": value, "unit": unit})


def _write(model: nn.Module, report: Report, folder: Path, options: Options) -> None:
    table = pa.Table.from_pylist(report.heads, schema=HEADS)
    write_atomically(folder / "heads.parquet", table_bytes(table))
    for suffix, content in figure_bytes(head_figure(table)).items():
        write_atomically(folder / f"heads.{suffix}", content)
    text = page(type(model).__name__, table, report.refused, report.losses, report.kept, vars(options))
    write_atomically(folder / "index.html", text.encode())
    for old in ("kept.json", "pruned.safetensors"):  # of an earlier call: not this model's
        (folder / old).unlink(missing_ok=True)
    if report.kept:
        write_atomically(folder / "kept.json", (json.dumps(report.kept, indent=1) + "\n").encode())
        state = {name: value.detach().cpu().clone().contiguous() for name, value in model.state_dict().items()}
        write_atomically(folder / "pruned.safetensors", tensor_bytes(state))
