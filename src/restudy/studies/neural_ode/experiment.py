"""Classifiers: an ODE, residual, tied or plain blocks between one stem and head (claims O3 to O6, O10, O12, O13).

Stage `classify` trains them on the same images in the same order; stage `solvers` solves a trained ODE-Net with other
tolerances and solvers than it was trained with. The training loop serves the other models of the study too.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.continuous import OdeBlock, Solver, TiedStack, solve_with_scipy
from restudy.methods.models import derive_seed
from restudy.methods.training import Resumable, evaluate, keep_freed_memory

from .models import BLOCKS, Classifier, Images, build, load_images

if TYPE_CHECKING:
    from restudy.tracking.live import LiveCurves

Row = dict[str, Any]


class Task:
    """What is trained: all chance comes from the step's number, so that a resumed run sees the same batches."""

    model: nn.Module

    def loss(self, step: int) -> Tensor:
        """The scalar to go down."""
        raise NotImplementedError

    def numbers(self) -> dict[str, float]:
        """More numbers of the step that was just taken, averaged over a window like the loss."""
        return {}


@dataclass(frozen=True)
class Recipe:
    """How a task is trained; stands in every checkpoint.

    Attributes:
        name: of arm, seed and size. steps, rate: of the optimiser; the rate decays by a cosine to 0.
        optimizer: Adam, or SGD with momentum .9. window: steps that a row of the curves averages over.
    """

    name: str
    steps: int
    rate: float
    optimizer: Literal["adam", "sgd"]
    window: int


@dataclass
class Curves:
    """Rows {step, metric: mean over the window}, CPU seconds of training up to each."""

    rows: list[Row] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def diverged(self) -> bool:
        """Whether the loss was not finite, or the solver gave up; the weights are those before that step."""
        return bool(self.rows) and math.isnan(self.rows[-1]["loss"])

    def last(self, metric: str, share: float = 0.1) -> float:
        """Mean of a metric over the last share of the steps, at least one row."""
        return self._mean(metric, self.rows[-max(1, round(share * len(self.rows))) :])

    def first(self, metric: str, share: float = 0.1) -> float:
        """Mean of a metric over the first share of the steps, at least one row."""
        return self._mean(metric, self.rows[: max(1, round(share * len(self.rows)))])

    def judged(self, rows: Iterable[Row]) -> list[Row]:
        """Rows of a table, their values NaN where the run diverged: a failed replicate, whatever the weights say."""
        return [row | {"value": math.nan} if self.diverged else row for row in rows]

    def told(self, **units: str) -> Iterator[Row]:
        """Rows of a table of curves: the metrics named, with their units."""
        for row in self.rows:
            for metric in [name for name in units if name in row]:
                yield {"step": row["step"], "metric": metric, "value": row[metric], "unit": units[metric]}

    @staticmethod
    def _mean(metric: str, rows: list[Row]) -> float:
        return float(sum(row.get(metric, math.nan) for row in rows) / len(rows))


def fit(task: Task, recipe: Recipe, checkpoints: Path, live: LiveCurves | None = None) -> Curves:
    """Train in place, in training mode; a run that finds its checkpoint goes on there.

    Raises:
        ResultError: a checkpoint of another recipe.
    """
    optimizer: torch.optim.Optimizer
    if recipe.optimizer == "sgd":
        optimizer = torch.optim.SGD(task.model.parameters(), recipe.rate, momentum=0.9)
    else:
        optimizer = torch.optim.Adam(task.model.parameters(), recipe.rate, fused=True)
    curves = Curves()
    parts = {"model": task.model, "optimizer": optimizer, "records": curves.rows, "seconds": curves.seconds}
    run = Resumable(checkpoints / f"{recipe.name}.pt", recipe, live, **parts)
    for window in run.units(0 if curves.diverged else math.ceil(recipe.steps / recipe.window), every=4):
        steps = range(window * recipe.window, min((window + 1) * recipe.window, recipe.steps))
        sums: dict[str, float] = {}
        start = time.process_time()
        for step in steps:
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * (0.5 * (1 + math.cos(math.pi * step / recipe.steps)))
            value = _step(task, optimizer, step)
            if not math.isfinite(value):
                sums = {"loss": math.nan}
                break
            for name, found in {"loss": value, **task.numbers()}.items():
                sums[name] = sums.get(name, 0.0) + found
        curves.seconds.append((curves.seconds[-1] if curves.seconds else 0.0) + time.process_time() - start)
        curves.rows.append({"step": steps.stop} | {name: total / len(steps) for name, total in sums.items()})
        if curves.diverged:
            run.save()
            break
    return curves


def _step(task: Task, optimizer: torch.optim.Optimizer, number: int) -> float:
    """Take a step unless the loss is not finite or the solver gives up; the loss before it, NaN in those cases."""
    try:
        loss = task.loss(number)
        if not math.isfinite(value := float(loss.detach())):
            return math.nan
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
    except AssertionError as error:
        # How torchdiffeq says that its step has become too small, or the state infinite.
        if not any(text in str(error) for text in ("underflow in dt", "non-finite")):
            raise
        return math.nan
    optimizer.step()
    return value


KEPT = ("odenet", "rknet", "tied6")
"""Arms whose weights later stages read."""


@dataclass
class Classification(Task):
    """Batches in an order that the seed alone determines, the same for every arm."""

    model: nn.Module
    images: Images
    batch_size: int
    seed: int
    accuracy: float = 0.0
    _orders: dict[int, Tensor] = field(default_factory=dict)

    def loss(self, step: int) -> Tensor:
        """Cross-entropy of the step's batch, nats."""
        epoch, place = divmod(step, len(self.images.labels) // self.batch_size)
        if epoch not in self._orders:
            generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
            self._orders = {epoch: torch.randperm(len(self.images.labels), generator=generator)}
        chosen = self._orders[epoch][place * self.batch_size : (place + 1) * self.batch_size]
        device = next(self.model.parameters()).device
        labels = self.images.labels[chosen].to(device)
        logits = self.model(self.images.inputs[chosen].to(device))
        self.accuracy = float((logits.detach().argmax(1) == labels).float().mean())
        return F.cross_entropy(logits, labels)

    def numbers(self) -> dict[str, float]:
        """Accuracy before the step, and the field's evaluations where there is one."""
        found = {"accuracy": self.accuracy}
        body = getattr(self.model, "body", None)
        if isinstance(body, OdeBlock):
            found |= {"forward": body.evaluations.forward, "backward": body.evaluations.backward}
        return found


def classify(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    train_images: int,
    test_images: int,
    side: int,
    channels: int,
    hidden: int,
    batch_size: int,
    steps: int,
    learning_rates: Mapping[str, float],
    tolerance: float,
    window: int,
) -> Outputs:
    """Train every arm with SGD (momentum .9, cosine decay) for every seed.

    Returns `training` (test error, parameters, final train loss and accuracy, evaluations early and late), `curves`,
    the volatile `train_timings` (CPU seconds), and the weights of `KEPT`.
    """
    keep_freed_memory()
    rows: dict[str, list[Row]] = {"training": [], "curves": [], "train_timings": []}
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        images = load_images(seed, train_images, test_images, side)
        for arm in arms:
            model = build(arm, channels=channels, side=side, hidden=hidden, tolerance=tolerance, seed=seed)
            model.to(context.device)
            recipe = Recipe(f"{arm}-s{seed}", steps, float(learning_rates[arm]), "sgd", window)
            task = Classification(model, images, batch_size, seed)
            curves = fit(task, recipe, context.checkpoints, context.live(seed))
            here = {"seed": seed, "arm": arm}
            rows["training"] += [here | row for row in _summary(model, images, curves)]
            told = curves.told(loss="nats", accuracy="1", forward="evaluations", backward="evaluations")
            rows["curves"] += [here | row for row in told]
            timed = zip(curves.rows, curves.seconds, strict=True)
            rows["train_timings"] += [here | {"step": row["step"], "seconds": s} for row, s in timed]
            if arm in KEPT:
                weights |= {f"s{seed}/{arm}/{n}": t.detach().cpu().clone() for n, t in model.state_dict().items()}
    return {**rows, "weights": weights}


def _summary(model: nn.Module, images: Images, curves: Curves) -> list[Row]:
    """Numbers of a finished run; final ones are means over the last tenth of the steps, before each step."""
    accuracy = math.nan if curves.diverged else evaluate(model, images.test_inputs, images.test_labels)[1]
    found = {
        "test_error": (1 - accuracy, "1"),
        "parameters": (float(sum(p.numel() for p in model.parameters())), "count"),
        "train_loss": (curves.last("loss"), "nats"),
        "train_accuracy": (curves.last("accuracy"), "1"),
        "diverged": (float(curves.diverged), "1"),
    }
    if "forward" in curves.rows[0]:
        for name in ("forward", "backward"):
            found |= {
                f"{name}_early": (curves.first(name), "evaluations"),
                f"{name}_late": (curves.last(name), "evaluations"),
            }
            found[f"{name}_mean"] = (sum(row[name] for row in curves.rows) / len(curves.rows), "evaluations")
    return [{"metric": metric, "value": value, "unit": unit} for metric, (value, unit) in found.items()]


REFERENCE = 1e-9
BATCH = 250
"""Fixed, since the tolerance applies to the whole batch's norm, so the number of evaluations depends on its size."""
RK4_STEPS = 8
FLOAT32 = 1e-4
"""Accuracies in float32 are measured down to this tolerance; rounding rules below."""


def solvers(
    context: Context,
    *,
    seeds: Sequence[int],
    side: int,
    channels: int,
    train_images: int,
    test_images: int,
    exact_images: int,
    error_images: int,
    tolerances: Sequence[float],
    swap_tolerance: float,
    tolerance: float,
) -> Outputs:
    """Solve the trained fields anew, in float64 on the first test images and in float32 on all `test_images`.

    Returns `tolerances` (error of the state against tolerance 1e-9 on `error_images`, evaluations, accuracies),
    `exchanges` (logits and accuracies under other solvers on `exact_images`, backward evaluations by norm) and the
    volatile `solver_timings`.
    """
    keep_freed_memory()
    weights = context.tensors("weights")
    rows: dict[str, list[Row]] = {"tolerances": [], "exchanges": [], "solver_timings": []}
    for seed in seeds:
        images = load_images(seed, train_images, test_images, side)

        def trained(arm: str, seed: int = seed) -> Classifier:
            model = build(arm, channels=channels, side=side, hidden=1, tolerance=tolerance, seed=seed)
            prefix = f"s{seed}/{arm}/"
            model.load_state_dict({n.removeprefix(prefix): t for n, t in weights.items() if n.startswith(prefix)})
            assert isinstance(model, Classifier)
            return model.eval()

        found, timed = by_tolerance(trained("odenet"), images, error_images, tolerances)
        rows["tolerances"] += [{"seed": seed} | row for row in found]
        rows["solver_timings"] += [{"seed": seed} | row for row in timed]
        odenet, tied = {"seed": seed, "arm": "odenet"}, {"seed": seed, "arm": "tied6"}
        rows["exchanges"] += [
            odenet | row for row in by_solver(trained("odenet"), images, exact_images, swap_tolerance)
        ]
        rows["exchanges"] += [odenet | row for row in refined(trained("odenet"), images)]
        rows["exchanges"] += [tied | row for row in refined(trained("tied6"), images)]
        rows["exchanges"] += [odenet | row for row in backward_norms(trained("rknet"), images, tolerance)]
    return {**rows}


def _row(metric: str, value: float | Tensor, unit: str = "1") -> Row:
    return {"metric": metric, "value": float(value), "unit": unit}


@torch.no_grad()
def by_tolerance(
    model: Classifier, images: Images, error_images: int, tolerances: Sequence[float]
) -> tuple[list[Row], list[Row]]:
    """Relative error of z(1), evaluations and CPU seconds a batch in float64, accuracy in float32, by tolerance."""
    block = _block(model)
    rows: list[Row] = []
    timed: list[Row] = []
    accurate: dict[float, float] = {}
    for tolerance in [t for t in tolerances if t >= FLOAT32]:
        block.solver = Solver(tolerance=tolerance)
        accurate[tolerance] = _accuracy(model, images)
    model.double()
    double = images.test_inputs[:error_images].double()
    hidden = [model.stem(part) for part in double.split(BATCH)]  # type: ignore[no-untyped-call]
    block.solver = Solver(tolerance=REFERENCE)
    reference = torch.cat([block(part) for part in hidden])
    for tolerance in tolerances:
        block.solver = Solver(tolerance=tolerance)
        counts, found = [], []
        start = time.process_time()
        for part in hidden:
            found.append(block(part))
            counts.append(block.evaluations.forward)
        timed.append({"tolerance": tolerance, "seconds": (time.process_time() - start) / len(hidden)})
        state = torch.cat(found)
        numbers = [
            _row("state_error", (state - reference).norm() / reference.norm()),
            _row("evaluations", sum(counts) / len(counts), "evaluations"),
        ]
        numbers += [_row("accuracy", accurate[tolerance])] if tolerance in accurate else []
        rows += [{"tolerance": tolerance} | row for row in numbers]
    return rows, timed


@torch.no_grad()
def by_solver(model: Classifier, images: Images, exact_images: int, tolerance: float) -> Iterator[Row]:
    """Largest distance of logits to dopri5's, and accuracy, with every solver at one tolerance; float64."""
    model.double()
    block = _block(model)
    labels = images.test_labels[:exact_images]
    parts = images.test_inputs[:exact_images].double().split(BATCH)  # type: ignore[no-untyped-call]
    hidden = [model.stem(part) for part in parts]
    times = torch.tensor([block.start, block.end], dtype=torch.float64)
    logits: dict[str, Tensor] = {}
    for method in ("dopri5", "dopri8", "bosh3"):
        block.solver = Solver(method, tolerance)
        logits[method] = model.head(torch.cat([block(part) for part in hidden]))
    field = block.counted.field
    solved = [solve_with_scipy(field, part, times, tolerance)[-1] for part in hidden]
    logits["scipy"] = model.head(torch.cat(solved))
    for method, found in logits.items():
        yield {"solver": method} | _row("logit_distance", (found - logits["dopri5"]).abs().max())
        yield {"solver": method} | _row("exact_accuracy", (found.argmax(1) == labels).double().mean())


@torch.no_grad()
def refined(model: Classifier, images: Images) -> Iterator[Row]:
    """Accuracy with a fixed step and its half: rk4 for the ODE-Net, Euler for the tied residual net."""
    if isinstance(model.body, TiedStack):
        method, steps = "euler", BLOCKS
        model.body = OdeBlock(model.body.field, Solver("euler", steps=BLOCKS), end=float(BLOCKS))
    else:
        method, steps = "rk4", RK4_STEPS
    block = _block(model)
    for factor in (1, 2):
        block.solver = Solver(method, steps=factor * steps)
        yield {"solver": f"{method}-{factor * steps}"} | _row("accuracy", _accuracy(model, images))


def backward_norms(model: Classifier, images: Images, tolerance: float) -> Iterator[Row]:
    """Backward over forward evaluations of one batch, in both norms of the backward solve.

    `model`: trained through the solver, so that neither norm shaped the weights.
    """
    block = _block(model)
    inputs, labels = images.inputs[:BATCH], images.labels[:BATCH]
    for name, seminorm in (("norm", False), ("seminorm", True)):
        block.solver = replace(Solver(tolerance=tolerance, adjoint=True), seminorm=seminorm)
        F.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
        counts = block.evaluations
        yield {"solver": name} | _row("backward_ratio", counts.backward / counts.forward)


def _accuracy(model: Classifier, images: Images) -> float:
    parts = zip(images.test_inputs.split(BATCH), images.test_labels.split(BATCH), strict=True)  # type: ignore[no-untyped-call]
    return sum(int((model(part).argmax(1) == labels).sum()) for part, labels in parts) / len(images.test_labels)


def _block(model: Classifier) -> OdeBlock:
    assert isinstance(model.body, OdeBlock)
    return model.body
