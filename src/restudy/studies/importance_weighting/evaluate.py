"""Stage `evaluate`: log-likelihood by L_K with its error, L_k against k, active units, samples (sections 3 and 5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.methods.importance import (
    DeepGaussianAutoencoder,
    bound_of_groups,
    draw_log_weights,
    estimate_log_likelihood,
    unit_variances,
)
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.importance_weighting.arms import THEN, Arm, parse_swap
from restudy.studies.importance_weighting.images import SIDE, Images
from restudy.studies.importance_weighting.tidy import BOUNDS, LIKELIHOOD, SAMPLES, UNITS

Row = dict[str, Any]


def trained(weights: dict[str, Tensor], seed: int, name: str) -> DeepGaussianAutoencoder:
    """The network of a run; its sizes are read off the tensors."""
    prefix = f"s{seed}/{name}/"
    state = {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
    layers = len({key.split(".")[1] for key in state if key.startswith("encoder.")})
    hidden = [len(state[f"encoder.{i}.body.0.bias"]) for i in range(layers)]
    units = [len(state[f"encoder.{i}.mean.bias"]) for i in range(layers)]
    model = DeepGaussianAutoencoder(state["encoder.0.body.0.weight"].shape[1], units, hidden)
    model.load_state_dict(state)
    return model


def names_of(weights: dict[str, Tensor], seed: int) -> list[str]:
    """Names of all runs of a seed, in the order of training."""
    return list(dict.fromkeys(key.split("/")[1] for key in weights if key.startswith(f"s{seed}/")))


def measured_on_train(names: Sequence[str]) -> set[str]:
    """Runs whose training images are measured too: those with fixed pixels, and the same with resampled ones."""
    found = set()
    for name in names:
        if THEN not in name and (arm := Arm.parse(name)).fixed:
            found |= {name, Arm(arm.objective, arm.k, arm.layers, False, arm.images).name} & set(names)
    return found


def evaluate_autoencoders(
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
    """Measure every run on the same test images with the same number of samples.

    Returns `likelihood` (L_K and its errors by part), `bounds` (L_k, every k from draws of its own), `units` (variance
    of every latent unit's posterior mean) and `samples` (images of the first seed, for the figure).
    """
    keep_freed_memory()
    weights = context.tensors("weights")
    tables: dict[str, list[Row]] = {name: [] for name in ("likelihood", "bounds", "units", "samples")}
    for seed in seeds:
        images = Images.draw(fashion_mnist.load(), seed, train_images, test_images).to(context.device)
        names = names_of(weights, seed)
        on_train = measured_on_train(names)
        for name in names:
            model = trained(weights, seed, name).to(context.device)
            where = {"seed": seed, "arm": name}
            before = parse_swap(name)[0] if THEN in name else Arm.parse(name)
            parts = {"test": images.test} | ({"train": images.first(before.images).fixed} if name in on_train else {})
            for part, pixels in parts.items():
                generator = torch.Generator().manual_seed(derive_seed(seed, "likelihood", part))
                x = pixels[:likelihood_images]
                tables["likelihood"] += likelihood_rows(where, part, model, x, likelihood_samples, generator)
            generator = torch.Generator().manual_seed(derive_seed(seed, "bounds"))
            if name in bound_arms:
                x = images.test[:likelihood_images]
                tables["bounds"] += bound_rows(where, model, x, bound_k, bound_samples, generator)
            tables["units"] += unit_rows(where, model, images.test, generator)
            if seed == 0:
                tables["samples"] += sample_rows(where, model, images.test[:shown_images], generator)
    schemas = {"likelihood": LIKELIHOOD, "bounds": BOUNDS, "units": UNITS, "samples": SAMPLES}
    return {name: pa.Table.from_pylist(rows, schema=schemas[name]) for name, rows in tables.items()}


def likelihood_rows(
    where: Row, part: str, model: DeepGaussianAutoencoder, x: Tensor, samples: int, generator: torch.Generator
) -> Iterator[Row]:
    """Negative log-likelihood and its Monte-Carlo error, bias and effective samples, means over the images."""
    found = estimate_log_likelihood(draw_log_weights(model, x, samples, generator))
    metrics = {
        "nll": (-float(found.log_likelihood.mean()), "nats"),
        "standard_error": (found.mean_standard_error, "nats"),
        "bias": (float(found.bias.mean()), "nats"),
        "effective_samples": (float(found.effective_samples.median()), "1"),
    }
    for metric, (value, unit) in metrics.items():
        yield {**where, "part": part, "samples": samples, "metric": metric, "value": value, "unit": unit}


def bound_rows(
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
        yield {**where, "k": k, "metric": "bound", "value": float(bound.mean()), "unit": "nats"}
        error = float(bound.std()) / len(bound) ** 0.5
        yield {**where, "k": k, "metric": "error_over_images", "value": error, "unit": "nats"}


def unit_rows(where: Row, model: DeepGaussianAutoencoder, x: Tensor, generator: torch.Generator) -> Iterator[Row]:
    """Variance over the test images of every unit's posterior mean."""
    for layer, variances in enumerate(unit_variances(model, x, generator), 1):
        for index, value in enumerate(variances.tolist()):
            yield {**where, "layer": layer, "unit_index": index, "metric": "variance", "value": value, "unit": "1"}


def sample_rows(where: Row, model: DeepGaussianAutoencoder, x: Tensor, generator: torch.Generator) -> Iterator[Row]:
    """Test images and as many images drawn from the model, as probabilities of the pixels."""
    shown = {"test image": x, "sample": model.generate(len(x), generator)}
    for kind, pictures in shown.items():
        for image, values in enumerate(pictures.tolist()):
            yield {**where, "image": image, "kind": kind, "side": SIDE, "values": values}
