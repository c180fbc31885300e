"""Confidence, positional roles and importance of the heads of any torch model, and pruning to a budget."""

from __future__ import annotations

import json
import math
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
from restudy.head_report.data import IGNORED, check_outputs, prepared
from restudy.head_report.page import head_figure, page
from restudy.methods.heads.observe import confidence, offset_hits
from restudy.own_model import as_typed, called_on, check_device, check_folder, watched_embeddings
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
            (self.batch_size >= 1, "--batch-size", self.batch_size, "at least 1"),
            (self.loss in ("cross_entropy", "mse"), "--loss", self.loss, "cross_entropy, mse"),
            (
                self.keep is None or 0 < self.keep < 1 or (self.keep >= 1 and float(self.keep).is_integer()),
                *("--keep", self.keep, "a share between 0 and 1, or a whole number"),
            ),
            (self.rounds >= 1, "--rounds", self.rounds, "at least 1"),
        ]
        for fine, name, value, allowed in checks:
            if not fine:
                raise ConfigError(f"{name} is {value!r}", where="heads", remedy=f"allowed: {allowed}")
        check_device(self.device)

    def budget(self, total: int) -> int:
        """How many of all heads stay; ConfigError for more than there are."""
        keep = total if self.keep is None else self.keep
        found = round(keep * total) if 0 < keep < 1 else int(keep)
        if found > total:
            raise ConfigError(f"--keep {found} of {total} heads", where="heads", remedy=f"allowed: 1 to {total}")
        return found


@dataclass
class Report:
    """What was found: rows of `heads`, unsupported modules with reasons, losses, and the heads that stay by module."""

    heads: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    losses: dict[str, float] = field(default_factory=dict)
    kept: dict[str, list[int]] = field(default_factory=dict)


def inspect_heads(
    model: nn.Module,
    data: Mapping[str, Tensor],
    folder: Path,
    options: Options | None = None,
    shown: Mapping[str, str] | None = None,
) -> Report:
    """Measure every attention head of a model, prune it where asked, and write tables, a page and the pruned model.

    Args:
        model: any module with `nn.MultiheadAttention` inside, or a model of `transformers` with eager attention.
        data: `targets` and either `inputs`, given as the only argument, or named arguments of the model; all with the
            examples first. `lengths` (N,), where given, says how many tokens of each are looked at (EOS and padding
            out).
        folder: gets heads.parquet, heads.svg, .png, .pdf and index.html; and, where heads were removed, kept.json and
            pruned.safetensors (load them with `restudy.head_report.restore`). Made if absent. shown: the options as
            the page lists them.

    The model is left in evaluation mode and, where `keep` is given, with its heads removed.

    Raises:
        ConfigError: a folder that cannot be written, no attention that is known, data that do not fit, a budget larger
            than the model, a model that fails.
    """
    options = options or Options()
    options.check()
    check_folder(folder)
    model.to(options.device).eval()
    attentions, refused = find_attention(model)
    if not attentions:
        named = "; ".join(f"{name}: {why}" for name, why in refused.items()) or "no attention module found"
        raise ConfigError(named, where="heads", remedy="a model with torch.nn.MultiheadAttention is needed")
    options.budget(sum(attention.heads for attention in attentions))
    batches = list(_batches(model, data, options))
    report = Report(refused=refused)
    with watched_embeddings(model):
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
    _write(model, report, folder, shown or as_typed(vars(options)))
    return report


def restore(model: nn.Module, folder: Path) -> nn.Module:
    """A model built anew, with the heads and weights that `inspect_heads` left in a folder."""
    from safetensors.torch import load_file

    remove_heads(model, json.loads((folder / "kept.json").read_text()))
    model.load_state_dict(load_file(folder / "pruned.safetensors"))
    return model.eval()


def _batches(model: nn.Module, data: Mapping[str, Tensor], options: Options) -> Iterator[Batch]:
    kinds = [p.dtype for p in model.parameters() if p.is_floating_point()]
    arrays = prepared(data, options.loss, kinds[0] if kinds else torch.get_default_dtype())
    for start in range(0, len(arrays["targets"]), options.batch_size):
        batch = {n: values[start : start + options.batch_size].to(options.device) for n, values in arrays.items()}
        if options.loss == "mse" or bool((batch["targets"] != IGNORED).any()):  # nothing to learn from, and no mean
            yield batch


def _outputs(model: nn.Module, batch: Batch) -> Any:
    named = {name: values for name, values in batch.items() if name not in ("targets", "lengths")}
    alone = set(named) == {"inputs"}
    found = called_on(model, lambda: model(named["inputs"]) if alone else model(**named), named)
    found = found["logits"] if isinstance(found, Mapping) and "logits" in found else getattr(found, "logits", found)
    return found[0] if isinstance(found, tuple) and found else found


def _loss(model: nn.Module, batch: Batch, options: Options) -> Tensor:
    outputs, targets = _outputs(model, batch), batch["targets"]
    check_outputs(outputs, targets, options.loss)
    if options.loss == "mse":
        return F.mse_loss(outputs, targets)
    return F.cross_entropy(outputs.flatten(0, -2), targets.flatten())


@torch.no_grad()
def mean_loss(model: nn.Module, batches: list[Batch], options: Options) -> float:
    """Mean over batches, weighted by their examples.

    Raises:
        ConfigError: a loss that is not finite, or what the model raises.
    """
    total = seen = 0.0
    for batch in batches:
        loss = float(_loss(model, batch, options))
        if not math.isfinite(loss):
            fine = torch.isfinite(_outputs(model, batch).reshape(len(batch["targets"]), -1)).all(1).tolist()
            raise ConfigError(
                f"the loss is {loss} from example {int(seen) + (fine.index(False) if False in fine else 0)} on",
                where="heads",
                remedy="look for sentences that are all padding, inputs that are not numbers, weights that are not",
            )
        total, seen = total + loss * len(batch["targets"]), seen + len(batch["targets"])
    return total / seen


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
            loss = _loss(model, batch, options)
            if not loss.requires_grad:
                raise ConfigError(
                    "the loss has no gradient at any head",
                    where=type(model).__name__,
                    remedy="forward must not run under torch.no_grad, nor detach",
                )
            slopes = torch.autograd.grad(loss, weights, allow_unused=True)
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

    A round in which no head would go is passed over: more rounds than heads cost nothing more.

    Raises:
        ConfigError: a budget above the number of heads.
    """
    total = sum(attention.heads for attention in attentions)
    budget = options.budget(total)
    left = {(i, head) for i, attention in enumerate(attentions) for head in range(attention.heads)}
    stored = [attention.out.weight.detach().clone() for attention in attentions]
    try:
        for round_ in range(options.rounds):
            goal = budget + (total - budget) * (options.rounds - 1 - round_) // options.rounds
            if len(left) <= goal:
                continue
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
            lengths = batch.get("lengths")
            if lengths is not None and len(weights) != len(lengths):
                found = f"its weights are of {len(weights)} sequences where a batch has {len(lengths)} lengths"
                report.refused[name] = f"{found}; are the examples first?"
                continue
            rows, count = _counts(weights, lengths)
            sums[name] = sums[name] + rows if name in sums else rows
            queries[name] = queries.get(name, 0.0) + count
    for attention in attentions:
        if attention.name not in sums:
            report.refused.setdefault(attention.name, "its weights were not seen in a forward pass")
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
    own = torch.full((batch,), size, device=weights.device) if lengths is None else lengths.clamp(max=size)
    total, count = confidence(weights, own)
    rows = [torch.from_numpy(total)]
    for offset in OFFSETS:
        hits, fits = offset_hits(weights, own, offset)
        rows += [torch.from_numpy(hits.sum(0)), torch.full((heads,), float(fits.sum()), dtype=torch.float64)]
    return torch.stack(rows, 1), float(count)


def _add(report: Report, attention: Attention, head: int, metric: str, value: float, unit: str) -> None:
    report.heads.append({"module": attention.name, "head": head, "metric": metric, "value": value, "unit": unit})


def _write(model: nn.Module, report: Report, folder: Path, shown: Mapping[str, str]) -> None:
    table = pa.Table.from_pylist(report.heads, schema=HEADS)
    write_atomically(folder / "heads.parquet", table_bytes(table))
    for suffix, content in figure_bytes(head_figure(table)).items():
        write_atomically(folder / f"heads.{suffix}", content)
    text = page(type(model).__name__, table, report.refused, report.losses, report.kept, shown)
    write_atomically(folder / "index.html", text.encode())
    for old in ("kept.json", "pruned.safetensors"):  # of an earlier call: not this model's
        (folder / old).unlink(missing_ok=True)
    if report.kept:
        write_atomically(folder / "kept.json", (json.dumps(report.kept, indent=1) + "\n").encode())
        state = {name: value.detach().cpu().clone().contiguous() for name, value in model.state_dict().items()}
        write_atomically(folder / "pruned.safetensors", tensor_bytes(state))
