"""The stages: train under both bounds and swap them, measure what came out, and the gradients' signal-to-noise."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.errors import RestudyError
from restudy.methods.importance import (
    DeepGaussianAutoencoder,
    LinearGaussian,
    Moments,
    Objective,
    active_units,
    backward,
    bound_of_groups,
    distance,
    draw_log_weights,
    estimate_log_likelihood,
    gradient_moments,
    moments,
    unit_variances,
)
from restudy.methods.models import derive_seed
from restudy.methods.training import Resumable, keep_freed_memory

from .arms import THEN, Arm, parse_swap
from .models import SIDE, Batches, Images, trained, untrained

ESTIMATORS: tuple[Objective, ...] = ("iwae", "stl", "dreg")
UNITS = {"test_bound": "nats", "train_bound": "nats", "active_units_1": "1", "active_units_2": "1"}
BETAS, EPSILON = (0.9, 0.999), 1e-4  # of Adam, section 5
CURVE_SAMPLES, CURVE_IMAGES = 10, 500

Row = dict[str, Any]


def _rows(where: Row, metrics: Mapping[str, float], unit: str = "1") -> Iterator[Row]:
    for metric, value in metrics.items():
        yield {**where, "metric": metric, "value": value, "unit": unit}


# Training and swaps (sections 5.1 and 5.3)


@dataclass(frozen=True)
class Schedule:
    """Step sizes of a preset's runs from scratch, and when they are measured; the names are those of the parameters."""

    steps: int
    learning_rate: float
    last_learning_rate: float
    rate_stages: int
    stage_growth: float
    measure_every: int

    @property
    def stages(self) -> list[tuple[int, float]]:
        """First step and step size of each stage: sizes fall geometrically, lengths grow by `stage_growth`.

        The paper has 10^-3 to 10^-4 in 8 stages of growth 3 (section 5).
        """
        ratio = (self.last_learning_rate / self.learning_rate) ** (1 / max(self.rate_stages - 1, 1))
        lengths = [self.stage_growth**i for i in range(self.rate_stages)]
        ends = [sum(lengths[:i]) / sum(lengths) for i in range(self.rate_stages)]
        return [(round(self.steps * end), self.learning_rate * ratio**i) for i, end in enumerate(ends)]

    def rate(self, step: int) -> float:
        """Step size at a step; the last one stays for a continuation, as in the paper."""
        return [rate for first, rate in self.stages if step >= first][-1]

    def marks(self, start: int, stop: int) -> list[int]:
        """Steps between `start` and `stop` after which is measured: the multiples of `measure_every`, and `stop`."""
        return [*range(start - start % self.measure_every + self.measure_every, stop, self.measure_every), stop]


@dataclass
class Run:
    """A network in training; `records` holds what was measured of it, `spent` the CPU seconds of its steps."""

    model: DeepGaussianAutoencoder
    optimizer: torch.optim.Optimizer
    step: int = 0
    records: list[dict[str, float]] = field(default_factory=list)
    spent: dict[str, float] = field(default_factory=lambda: {"seconds": 0.0})

    @classmethod
    def of(cls, model: DeepGaussianAutoencoder) -> Run:
        """Begin a run with the paper's Adam; its step size is set at every step."""
        return cls(model, torch.optim.Adam(model.parameters(), lr=1.0, betas=BETAS, eps=EPSILON, fused=True))

    def continued(self) -> Run:
        """Copy network, optimizer state and step, to go on with."""
        run = Run.of(copy.deepcopy(self.model))
        run.optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        run.step = self.step
        return run


def train(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    swaps: Sequence[str],
    train_images: int,
    test_images: int,
    batch_size: int,
    hidden: int,
    latent: int,
    steps: int,
    swap_steps: int,
    learning_rate: float,
    last_learning_rate: float,
    rate_stages: int,
    stage_growth: float,
    measure_every: int,
) -> Outputs:
    """Train every arm, then continue the runs that `swaps` names, weights and optimizer state carried over.

    Tensors are named s<seed>/<run>/<parameter>.
    """
    keep_freed_memory()
    plan = Schedule(steps, learning_rate, last_learning_rate, rate_stages, stage_growth, measure_every)
    rows: list[Row] = []
    timings: list[Row] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        images = Images.draw(fashion_mnist.load(), seed, train_images, test_images).to(context.device)
        finished: dict[str, Run] = {}
        for name in (*arms, *swaps):
            before, after = parse_swap(name)
            own = images.first(before.images)
            if THEN in name:
                run, stop = finished[before.name].continued(), steps + swap_steps
            else:
                model = untrained(before, seed, hidden, latent, own.grey.mean(0).cpu())
                run, stop = Run.of(model.to(context.device)), steps
            batches = Batches(own, seed, batch_size, before.fixed)
            finished[name] = fit(run, name, after, batches, plan, stop, context.checkpoints / f"s{seed}-{name}.pt")
            for record in run.records:
                where = {"seed": seed, "arm": name, "step": int(record["step"])}
                rows += [
                    {**where, "metric": metric, "value": value, "unit": UNITS[metric]}
                    for metric, value in record.items()
                    if metric != "step"
                ]
            timings += _rows({"seed": seed, "arm": name, "step": run.step}, {"train": run.spent["seconds"]}, "seconds")
            weights |= {f"s{seed}/{name}/{key}": value for key, value in run.model.state_dict().items()}
    states = {key: value.detach().cpu().contiguous() for key, value in weights.items()}
    return {"training": rows, "timings": timings, "weights": states}


def fit(run: Run, name: str, arm: Arm, batches: Batches, plan: Schedule, stop: int, checkpoint: Path) -> Run:
    """Train in place from the run's step to `stop` by the arm's objective and k. Deterministic.

    Args:
        checkpoint: written after every measurement; resuming from it is bit-identical.

    Raises:
        RestudyError: the bound is not finite.
        ResultError: a checkpoint of another run.
    """
    recipe = {"name": name, "seed": batches.seed, "start": run.step, "stop": stop} | asdict(plan)
    marks = [run.step, *plan.marks(run.step, stop)]
    objective: Objective = arm.objective  # type: ignore[assignment]
    parts: dict[str, Any] = {"model": run.model, "optimizer": run.optimizer}
    parts |= {"records": run.records, "spent": run.spent}
    resumable = Resumable(checkpoint, recipe, **parts)
    if not run.records:
        run.records.append(_measured(run, batches))
    for leg in resumable.units(len(marks) - 1):
        total, first, run.step = 0.0, marks[leg], marks[leg + 1]
        for step in range(first, run.step):
            begin = time.process_time()
            x = batches.at(step)
            generator = torch.Generator().manual_seed(derive_seed(batches.seed, "noise", step))
            for group in run.optimizer.param_groups:
                group["lr"] = plan.rate(step)
            run.optimizer.zero_grad(set_to_none=True)
            bound = backward(objective, run.model, x, run.model.draw_noise(arm.k, len(x), generator))
            run.optimizer.step()
            run.spent["seconds"] += time.process_time() - begin
            total += float(bound.mean())
        if not math.isfinite(total):
            raise RestudyError(f"{name} diverged before step {run.step}", remedy="lower its step size")
        run.records.append(_measured(run, batches) | {"train_bound": total / (run.step - first)})
    run.step = stop
    return run


def _measured(run: Run, batches: Batches) -> dict[str, float]:
    """Measure L_10 of test images, and active units of each layer."""
    test = batches.images.test
    generator = torch.Generator().manual_seed(derive_seed(batches.seed, "curve"))
    log_w = draw_log_weights(run.model, test[:CURVE_IMAGES], CURVE_SAMPLES, generator)
    found = {"step": float(run.step), "test_bound": float(bound_of_groups(log_w, CURVE_SAMPLES).mean())}
    for layer, variances in enumerate(unit_variances(run.model, test, generator), 1):
        found[f"active_units_{layer}"] = float(active_units(variances))
    return found


# Log-likelihood, bounds and active units of trained networks (sections 3 and 5)


def evaluate(
    context: Context,
    *,
    seeds: Sequence[int],
    train_images: int,
    test_images: int,
    likelihood_images: int,
    likelihood_samples: int,
    bound_arms: Sequence[str],
    bound_samples: int,
    bound_k: Sequence[int],
    shown_images: int,
) -> Outputs:
    """Measure every run on the same test images with the same number of samples."""
    keep_freed_memory()
    weights = context.tensors("weights")
    tables: dict[str, list[Row]] = {name: [] for name in ("likelihood", "bounds", "units", "samples")}
    for seed in seeds:
        images = Images.draw(fashion_mnist.load(), seed, train_images, test_images).to(context.device)
        names = list(dict.fromkeys(key.split("/")[1] for key in weights if key.startswith(f"s{seed}/")))
        on_train = _measured_on_train(names)
        for name in names:
            model = trained(weights, seed, name).to(context.device)
            where = {"seed": seed, "arm": name}
            own = images.first(parse_swap(name)[0].images)
            parts = {"test": own.test} | ({"train": own.fixed} if name in on_train else {})
            for part, x in parts.items():
                generator = torch.Generator().manual_seed(derive_seed(seed, "likelihood", part))
                here = where | {"part": part, "samples": likelihood_samples}
                tables["likelihood"] += _likelihood(here, model, x[:likelihood_images], generator)
            generator = torch.Generator().manual_seed(derive_seed(seed, "bounds"))
            if name in bound_arms:
                x = images.test[:likelihood_images]
                tables["bounds"] += _bounds(where, model, x, bound_k, bound_samples, generator)
            for layer, variances in enumerate(unit_variances(model, images.test, generator), 1):
                for index, value in enumerate(variances.tolist()):
                    tables["units"] += _rows(where | {"layer": layer, "unit_index": index}, {"variance": value})
            if seed == 0:
                x = images.test[:shown_images]
                for kind, pictures in (("test image", x), ("sample", model.generate(len(x), generator))):
                    tables["samples"] += [
                        {**where, "image": image, "kind": kind, "side": SIDE, "values": values}
                        for image, values in enumerate(pictures.tolist())
                    ]
    return tables


def _measured_on_train(names: Sequence[str]) -> set[str]:
    """Choose runs whose training images are measured too: with fixed pixels, and the same with resampled ones."""
    fixed = {name for name in names if THEN not in name and Arm.parse(name).fixed}
    return fixed | ({name.replace("_fixed", "") for name in fixed} & set(names))


def _likelihood(where: Row, model: DeepGaussianAutoencoder, x: Tensor, generator: torch.Generator) -> Iterator[Row]:
    """Negative log-likelihood by L_samples, its Monte-Carlo error and bias, effective samples, over the images."""
    found = estimate_log_likelihood(draw_log_weights(model, x, where["samples"], generator))
    nats = {
        "nll": -float(found.log_likelihood.mean()),
        "standard_error": found.mean_standard_error,
        "bias": float(found.bias.mean()),
    }
    yield from _rows(where, nats, "nats")
    yield from _rows(where, {"effective_samples": float(found.effective_samples.median())})


def _bounds(
    where: Row,
    model: DeepGaussianAutoencoder,
    x: Tensor,
    every_k: Sequence[int],
    samples: int,
    generator: torch.Generator,
) -> Iterator[Row]:
    """Mean L_k over the images and its error over the images; no k shares a draw with another.

    From one set of draws the means would rise with k whatever the model is, by Jensen's inequality on the sample.
    """
    for k in every_k:
        bound = bound_of_groups(draw_log_weights(model, x, max(k, samples), generator), k).mean(0)
        metrics = {"bound": float(bound.mean()), "error_over_images": float(bound.std()) / len(bound) ** 0.5}
        yield from _rows({**where, "k": k}, metrics, "nats")


# Signal-to-noise of the encoder's gradient (Rainforth et al. 2018, section 4)


def toy(
    context: Context,
    *,
    seeds: Sequence[int],
    dimensions: int,
    perturbation: float,
    toy_k: Sequence[int],
    toy_draws: int,
) -> Outputs:
    """Draw gradients of A and b together on a linear Gaussian model (a seed's) near its best encoder."""
    rows: list[Row] = []
    for seed in seeds:
        generator = torch.Generator().manual_seed(derive_seed(seed, "toy"))
        model = LinearGaussian.perturbed(dimensions, perturbation, generator)
        x = model.draw_x(generator)
        for k in toy_k:
            at_once = max(1, min(toy_draws, 20_000 // k))
            batches = [min(at_once, toy_draws - i) for i in range(0, toy_draws, at_once)]
            found = {
                name: moments(model.encoder_gradients(name, x, k, size, generator) for size in batches)
                for name in ESTIMATORS
            }
            for name, here in found.items():
                rows += _rows({"seed": seed, "objective": name, "k": k}, _signal(name, here, found["iwae"]))
    return {"toy_gradients": rows}


def signal(
    context: Context,
    *,
    seeds: Sequence[int],
    train_images: int,
    test_images: int,
    signal_arms: Sequence[str],
    signal_k: Sequence[int],
    signal_batch: int,
    signal_draws: int,
) -> Outputs:
    """Draw gradients of trained networks on one mini-batch, every estimator and k on draws of its own.

    A part (encoder, decoder) is all of its parameters together.
    """
    keep_freed_memory()
    weights = context.tensors("weights")
    rows: list[Row] = []
    for seed in seeds:
        images = Images.draw(fashion_mnist.load(), seed, train_images, test_images).to(context.device)
        x = images.fixed[:signal_batch]
        for arm in signal_arms:
            model = trained(weights, seed, arm).to(context.device)
            for k in signal_k:
                found: dict[str, tuple[Moments, Moments]] = {}
                for estimator in ESTIMATORS:
                    generator = torch.Generator().manual_seed(derive_seed(seed, "signal", arm, estimator, k))
                    found[estimator] = gradient_moments(estimator, model, x, k, signal_draws, generator)
                for name, parts in found.items():
                    for part, here, reference in zip(("encoder", "decoder"), parts, found["iwae"], strict=True):
                        where = {"seed": seed, "arm": arm, "objective": name, "k": k, "parameters": part}
                        metrics = _signal(name, here, reference, total_variance=here.total_variance)
                        rows += _rows(where | {"draws": signal_draws}, metrics)
    return {"signal": rows}


def _signal(name: str, here: Moments, iwae: Moments, **more: float) -> dict[str, float]:
    """Signal-to-noise, norm of the expected gradient, and its distance from IWAE's with that distance's error."""
    metrics = {"signal_to_noise": here.signal_to_noise, "squared_norm": here.squared_norm, **more}
    if name == "iwae":
        return metrics
    length, error = distance(here, iwae)
    return metrics | {"distance": length, "distance_error": error}
