"""Stage `train`: for every seed the classifier, a second one for features, and the generative in-fillers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.infilling import fit_gan, fit_regression, fit_vae
from restudy.methods.infilling.fitting import shown_to_net
from restudy.methods.infilling.holes import random_holes
from restudy.methods.infilling.nets import LATENT, ConditionalVae, Generator
from restudy.methods.models import derive_seed
from restudy.methods.training import evaluate, keep_freed_memory, load_checkpoint, save_checkpoint, train_classifier
from restudy.studies.counterfactual_infill.nets import SceneCNN
from restudy.studies.counterfactual_infill.scenes import Scenes, make
from restudy.studies.counterfactual_infill.tidy import LOSSES, TRAINING

LOSS_POINTS = 60
FITS: dict[str, Callable[..., Any]] = {"vae": fit_vae, "gan": fit_gan, "judge": fit_regression}


def train_nets(
    context: Context,
    *,
    seeds: Sequence[int],
    canvas: int,
    classes: Sequence[int],
    train_scenes: int,
    test_scenes: int,
    channels: int,
    epochs: int,
    second_epochs: int,
    batch_size: int,
    learning_rate: float,
    infiller_channels: int,
    vae_steps: int,
    gan_steps: int,
    judge_steps: int,
    infiller_batch_size: int,
    infiller_learning_rate: float,
) -> Outputs:
    """Train the nets of every seed on scenes of its own.

    Returns `training` (accuracy, error of the in-fillers on hidden pixels), `losses` of the in-fillers, and the tensors
    `weights`, keyed `s<seed>/<net>/<parameter>`, beside `s<seed>/canvas`, `/classes` and `/mean` (grey of the scenes).
    """
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    losses: list[dict[str, Any]] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        shown = make("train", train_scenes, canvas, classes, seed, "classifier").to(context.device)
        test = make("test", test_scenes, canvas, classes, seed, "accuracy").to(context.device)
        nets: dict[str, nn.Module] = {}
        for name, passes in (("classifier", epochs), ("second", second_epochs)):
            net = SceneCNN(len(classes), channels, seed=derive_seed(seed, name)).to(context.device)
            nets[name] = _classifier(net, shown, passes, batch_size, learning_rate, context.checkpoints, seed, name)
            accuracy = evaluate(net, test.images, test.labels)[1]
            rows.append({"seed": seed, "net": name, "metric": "test_accuracy", "value": accuracy, "unit": "1"})
        recipe = {"channels": infiller_channels, "batch_size": infiller_batch_size, "seed": seed}
        for name, steps in {"vae": vae_steps, "gan": gan_steps, "judge": judge_steps}.items():
            fit = partial(FITS[name], shown.images, steps=steps, learning_rate=infiller_learning_rate, **recipe)
            painter, found = _kept(context.checkpoints / f"s{seed}-{name}.pt", infiller_channels, name, fit)
            nets[name] = painter.to(context.device)
            losses += _loss_rows(seed, found)
        mean = float(shown.images.mean())
        rows += _fill_errors(nets, test, mean, seed)
        known = {"classes": torch.tensor(list(classes)), "canvas": torch.tensor(canvas), "mean": torch.tensor(mean)}
        states = {f"{name}/{key}": value for name, net in nets.items() for key, value in net.state_dict().items()}
        weights |= {f"s{seed}/{key}": value.cpu().contiguous() for key, value in (known | states).items()}
    return {
        "training": pa.Table.from_pylist(rows, schema=TRAINING),
        "losses": pa.Table.from_pylist(losses, schema=LOSSES),
        "weights": weights,
    }


def _classifier(
    net: SceneCNN,
    shown: Scenes,
    passes: int,
    batch_size: int,
    learning_rate: float,
    checkpoints: Path,
    seed: int,
    name: str,
) -> SceneCNN:
    train_classifier(
        net,
        shown.images,
        shown.labels,
        epochs=passes,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=derive_seed(seed, name),
        checkpoint=checkpoints / f"s{seed}-{name}.pt",
        channels_last=True,
    )
    return net


def _loss_rows(seed: int, losses: dict[str, list[float]]) -> list[dict[str, Any]]:
    return [
        {"seed": seed, "net": part, "step": step, "loss": values[step]}
        for part, values in losses.items()
        for step in range(0, len(values), max(1, len(values) // LOSS_POINTS))
    ]


def _kept(path: Path, channels: int, name: str, fit: Callable[[], Any]) -> tuple[nn.Module, dict[str, list[float]]]:
    """A trained in-filler and its losses, from the checkpoint where there is one."""
    content = load_checkpoint(path)
    if content is None:
        net, losses = fit()
        save_checkpoint(path, {"state": net.state_dict(), "losses": losses})
        content = {"state": net.state_dict(), "losses": losses}
    build = ConditionalVae if name == "vae" else Generator
    made = build(channels)
    made.load_state_dict(content["state"])
    return made.eval().requires_grad_(False), content["losses"]


def _fill_errors(nets: dict[str, nn.Module], test: Scenes, mean: float, seed: int) -> list[dict[str, Any]]:
    """Mean absolute error on hidden pixels: in-fillers, grey, and in-fillers shown another scene's surroundings."""
    images = test.images[:256]
    generator = torch.Generator().manual_seed(derive_seed(seed, "fill error"))
    hidden = random_holes(len(images), images.shape[-1], generator).to(images.device)
    normal = torch.randn(len(images), LATENT, *[images.shape[-1] // 4] * 2, generator=generator).to(images.device)
    pictures = {"mean": torch.full_like(images, mean)}
    with torch.no_grad():
        for name in FITS:
            noise = torch.zeros_like(normal) if name == "judge" else normal
            pictures[name] = nets[name](shown_to_net(images, hidden), noise)
            pictures[f"{name}_elsewhere"] = nets[name](shown_to_net(images.roll(1, 0), hidden), noise)
    error = {n: float(((p - images).abs() * hidden).sum() / hidden.sum()) for n, p in pictures.items()}
    return [{"seed": seed, "net": n, "metric": "hidden_error", "value": v, "unit": "1"} for n, v in error.items()]
