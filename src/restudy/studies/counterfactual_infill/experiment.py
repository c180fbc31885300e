"""The stages up to the maps: train the nets, fill holes with every in-filler, optimise masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.errors import RestudyError
from restudy.methods.infilling import (
    Noise,
    Settings,
    bbmp,
    composite,
    fido,
    fit_gan,
    fit_regression,
    fit_vae,
    log_odds,
)
from restudy.methods.infilling.fitting import shown_to_net
from restudy.methods.infilling.holes import random_holes, rectangles
from restudy.methods.infilling.nets import LATENT
from restudy.methods.infilling.quality import leak, neighbour_distance, seam
from restudy.methods.models import derive_seed
from restudy.methods.training import Resumable, evaluate, keep_freed_memory, train_classifier

from .models import Nets, SceneCNN, Scenes, load_nets, make, painter

FITS: dict[str, Callable[..., Any]] = {"vae": fit_vae, "gan": fit_gan, "judge": fit_regression}
FILLERS = ("zeros", "mean", "blur", "noise", "local", "vae", "gan", "judge", "ground")
LOSS_POINTS, TRACE_POINTS = 60, 25
BUDGET = 50.0  # penalty of hiding everything in the paper: .001 per pixel of 224 x 224
POOL = 40  # scenes to choose from, for each that is explained

Row = dict[str, Any]


def train(
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

    Tensors are named s<seed>/<net>/<parameter>, beside s<seed>/canvas, /classes and /mean (grey of the scenes).
    """
    keep_freed_memory()
    steps = {"vae": vae_steps, "gan": gan_steps, "judge": judge_steps}
    recipe: Row = {"channels": infiller_channels, "batch_size": infiller_batch_size}
    recipe["learning_rate"] = infiller_learning_rate
    training: list[Row] = []
    losses: list[Row] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        shown = make("train", train_scenes, canvas, classes, seed, "classifier").to(context.device)
        test = make("test", test_scenes, canvas, classes, seed, "accuracy").to(context.device)
        nets: dict[str, nn.Module] = {}
        for name, passes in (("classifier", epochs), ("second", second_epochs)):
            net = SceneCNN(len(classes), channels, seed=derive_seed(seed, name)).to(context.device)
            train_classifier(
                net,
                shown.images,
                shown.labels,
                epochs=passes,
                batch_size=batch_size,
                learning_rate=learning_rate,
                seed=derive_seed(seed, name),
                checkpoint=context.checkpoints / f"s{seed}-{name}.pt",
                channels_last=True,
            )
            nets[name] = net
            accuracy = evaluate(net, test.images, test.labels)[1]
            training.append({"seed": seed, "net": name, "metric": "test_accuracy", "value": accuracy, "unit": "1"})
        painters, rows = _painters(context, shown.images, seed, steps, recipe)
        nets |= painters
        losses += rows
        mean = float(shown.images.mean())
        for name, error in _fill_errors(nets, test.images[:256], mean, seed).items():
            training.append({"seed": seed, "net": name, "metric": "hidden_error", "value": error, "unit": "1"})
        known = {"classes": torch.tensor(list(classes)), "canvas": torch.tensor(canvas), "mean": torch.tensor(mean)}
        states = {f"{name}/{key}": value for name, net in nets.items() for key, value in net.state_dict().items()}
        weights |= {f"s{seed}/{key}": value.cpu().contiguous() for key, value in (known | states).items()}
    return {"training": training, "losses": losses, "weights": weights}


def _painters(
    context: Context, images: Tensor, seed: int, steps: Mapping[str, int], recipe: Row
) -> tuple[dict[str, nn.Module], list[Row]]:
    """Train the in-fillers and their judge, and list their losses; a killed run goes on with the next one."""
    kept: dict[str, Any] = {}
    path = context.checkpoints / f"s{seed}-painters.pt"
    for i in Resumable(path, {**recipe, **steps}, kept=kept).units(len(steps)):
        name = list(steps)[i]
        net, losses = FITS[name](images, steps=steps[name], seed=seed, **recipe)
        kept[name] = {"state": net.state_dict(), "losses": losses}
    nets: dict[str, nn.Module] = {}
    for name, content in kept.items():
        nets[name] = painter(name, recipe["channels"])
        nets[name].load_state_dict(content["state"])
        nets[name].eval().requires_grad_(False).to(context.device)
    return nets, [
        {"seed": seed, "net": part, "step": step, "loss": values[step]}
        for content in kept.values()
        for part, values in content["losses"].items()
        for step in range(0, len(values), max(1, len(values) // LOSS_POINTS))
    ]


@torch.no_grad()
def _fill_errors(nets: Mapping[str, nn.Module], images: Tensor, mean: float, seed: int) -> dict[str, float]:
    """Mean absolute error on hidden pixels: in-fillers, grey, and in-fillers shown another scene's surroundings."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "fill error"))
    hidden = random_holes(len(images), images.shape[-1], generator).to(images.device)
    normal = torch.randn(len(images), LATENT, *[images.shape[-1] // 4] * 2, generator=generator).to(images.device)
    pictures = {"mean": torch.full_like(images, mean)}
    for name in FITS:
        noise = torch.zeros_like(normal) if name == "judge" else normal
        pictures[name] = nets[name](shown_to_net(images, hidden), noise)
        pictures[f"{name}_elsewhere"] = nets[name](shown_to_net(images.roll(1, 0), hidden), noise)
    return {n: float(((p - images).abs() * hidden).sum() / hidden.sum()) for n, p in pictures.items()}


# What an in-filler puts into a hole, before any explanation is made


def fill(
    context: Context, *, seeds: Sequence[int], scenes: int, neighbours: int, real_scenes: int, examples: int
) -> Outputs:
    """Fill holes of test scenes with every in-filler; one row per image and metric, and pictures of seed 0.

    `distance`: of the completed scene to its nearest real ones in the second classifier's features, over the mean of
    that of untouched scenes. `odd_change`: absolute change of the log-odds when a square without object is filled.
    `hidden_excess`, `hidden_probability`: share of right classes above chance, and probability of the class, once the
    object's square is hidden. `leak`: largest change of the fill when the hidden pixels change.
    """
    keep_freed_memory()
    fills: list[Row] = []
    samples: list[Row] = []
    for seed in seeds:
        nets = load_nets(context.tensors("weights"), seed, context.device)
        test = make("test", scenes, nets.canvas, nets.classes, seed, "fills").to(context.device)
        real = make("train", real_scenes, nets.canvas, nets.classes, seed, "real").to(context.device)
        holes = {
            "anywhere": _squares_anywhere(test, seed),
            "empty": empty_squares(test, seed).float(),
            "object": test.squares().float(),
        }
        pictures: dict[str, dict[str, Tensor]] = {}
        known = nets.second.features(real.images)
        untouched = neighbour_distance(nets.second.features(test.images), known, neighbours).mean()
        for name in FILLERS:
            infiller = nets.infiller(name, test.grounds)
            noise = Noise([derive_seed(seed, "fill", i) for i in range(scenes)], test.images.device)
            normal = noise.normal(*infiller.noise_shape(nets.canvas))
            done = {h: composite(test.images, infiller(test.images, hole, normal), hole) for h, hole in holes.items()}
            near = neighbour_distance(nets.second.features(done["anywhere"]), known, neighbours)
            found = {
                "distance": near / untouched,
                **_scores(nets, test, done, holes["anywhere"]),
                "leak": leak(infiller, test.images, holes["object"], normal, derive_seed(seed, "other pixels")),
            }
            fills += [
                {"seed": seed, "infiller": name, "image": i, "metric": metric, "value": value}
                | {"unit": "nats" if metric == "odd_change" else "1"}
                for metric, values in found.items()
                for i, value in enumerate(values.double().tolist())
            ]
            pictures[name] = done
        pictures["hidden"] = {"scene": test.images} | {h: test.images * (1 - hole) for h, hole in holes.items()}
        for name, shown in pictures.items() if seed == 0 else ():
            samples += [row for h in shown for row in picture_rows(shown[h][:examples], row=h, column=name)]
    return {"fills": fills, "samples": samples}


def _squares_anywhere(test: Scenes, seed: int) -> Tensor:
    """Draw squares of a third of the canvas's side at random places, float (N, 1, S, S)."""
    canvas = test.images.shape[-1]
    generator = torch.Generator().manual_seed(derive_seed(seed, "squares anywhere"))
    corners = torch.randint(0, canvas - canvas // 3 + 1, (len(test), 2), generator=generator)
    return rectangles(corners.to(test.images.device), canvas // 3, canvas).float()


def empty_squares(scenes: Scenes, seed: int) -> Tensor:
    """Mark a square of side S / 4 that touches the object's square nowhere, bool (N, 1, S, S)."""
    canvas = scenes.images.shape[-1]
    side, taken = canvas // 4, canvas // 2
    generator = np.random.default_rng(derive_seed(seed, "empty squares"))
    corners = []
    for top, left in scenes.corners.tolist():
        while True:
            y, x = generator.integers(0, canvas - side + 1, 2)
            if y + side <= top or y >= top + taken or x + side <= left or x >= left + taken:
                corners.append((int(y), int(x)))
                break
    return rectangles(torch.tensor(corners, device=scenes.corners.device), side, canvas)


def _scores(nets: Nets, test: Scenes, done: Mapping[str, Tensor], anywhere: Tensor) -> dict[str, Tensor]:
    """Judge fills by the classifier and by their seam, each (N,)."""
    as_it_was = log_odds(nets.classifier(test.images), test.labels)
    odd = log_odds(nets.classifier(done["empty"]), test.labels)
    without = nets.classifier(done["object"])
    return {
        "odd_change": (odd - as_it_was).abs(),
        "seam": seam(test.images, done["anywhere"], anywhere),
        "hidden_excess": (without.argmax(1) == test.labels).float() - 1 / len(nets.classes),
        "hidden_probability": without.softmax(1).gather(1, test.labels[:, None])[:, 0],
    }


def picture_rows(pictures: Tensor, first: int = 0, **where: Any) -> list[Row]:
    """Return rows of seed 0 that hold pictures (N, 1, S, S), images numbered from `first`."""
    return [
        {"seed": 0, "image": first + i, **where, "side": picture.shape[-1], "values": picture.flatten().cpu().numpy()}
        for i, picture in enumerate(pictures.detach())
    ]


# Masks by FIDO and BBMP, for every in-filler and penalty


def explain(
    context: Context,
    *,
    seeds: Sequence[int],
    images: int,
    penalties: Sequence[float],
    infillers: Sequence[str],
    restart_infillers: Sequence[str],
    bbmp_infillers: Sequence[str],
    ssr_infillers: Sequence[str],
    joint_infillers: Sequence[str],
    grid: int,
    iterations: int,
    learning_rate: float,
    samples: int,
) -> Outputs:
    """Optimise masks; a killed run goes on with the next method and in-filler.

    Tensors: s<seed>/<method>/<infiller>/r<restart>, (penalties, images, 1, grid, grid), methods `sdr`, `ssr`, `joint`
    and `bbmp`; s<seed>/scenes/<part>, what is explained; s<seed>/penalties.
    """
    keep_freed_memory()
    settings = Settings(grid, iterations, learning_rate, samples)
    runs = [("sdr", name, 0) for name in infillers] + [("sdr", name, 1) for name in restart_infillers]
    runs += [("bbmp", name, 0) for name in bbmp_infillers] + [("ssr", name, 0) for name in ssr_infillers]
    runs += [("joint", name, 0) for name in joint_infillers]
    recipe = asdict(settings) | {"images": images, "penalties": list(penalties), "runs": runs}
    tensors: dict[str, Tensor] = {}
    traces: list[Row] = []
    for seed in seeds:
        nets = load_nets(context.tensors("weights"), seed, context.device)
        chosen = explained(nets, images, seed, context.device)
        weights = [BUDGET / nets.canvas**2 * penalty for penalty in penalties]
        masks: dict[str, Tensor] = {}
        rows: list[Row] = []
        for i in Resumable(context.checkpoints / f"s{seed}.pt", recipe, masks=masks, traces=rows).units(len(runs)):
            method, name, restart = runs[i]
            noise = [derive_seed(seed, "masks", restart, image) for image in range(images)]
            given = nets.classifier, chosen.images, chosen.labels, nets.infiller(name), weights, noise
            if method == "bbmp":
                made = bbmp(*given, settings=settings)
            else:
                made = fido(*given, objective=method, settings=settings)  # type: ignore[arg-type]
            masks[f"s{seed}/{method}/{name}/r{restart}"] = made.grid.cpu()
            where = {"seed": seed, "method": method, "infiller": name, "restart": restart}
            rows += [
                where | {"penalty": penalty, "iteration": step, "objective": float(line[step])}
                for penalty, line in zip(penalties, made.trace.cpu(), strict=True)
                for step in range(0, iterations, max(1, iterations // TRACE_POINTS))
            ]
        traces += rows
        tensors |= masks | {f"s{seed}/scenes/{name}": part.cpu().contiguous() for name, part in vars(chosen).items()}
        tensors[f"s{seed}/penalties"] = torch.tensor(list(penalties), dtype=torch.float64)
    return {"masks": tensors, "traces": traces}


def explained(nets: Nets, images: int, seed: int, device: str) -> Scenes:
    """Choose the first test scenes of a seed that are classified rightly, and otherwise once the object is gone.

    The second condition makes sure that there is something to find: no removal could change the class of a scene whose
    ground alone is given that class.

    Raises:
        RestudyError: there are too few of them.
    """
    pool = make("test", POOL * images, nets.canvas, nets.classes, seed, "explained").to(device)
    right = nets.classifier(pool.images).argmax(1) == pool.labels
    gone = nets.classifier(pool.grounds).argmax(1) != pool.labels
    chosen = (right & gone).nonzero()[:images, 0]
    if len(chosen) < images:
        raise RestudyError(
            f"only {len(chosen)} of {len(pool)} scenes can be explained, {images} are asked for",
            where=f"seed {seed}",
            remedy="train the classifier longer, or lower images",
        )
    return pool[chosen]
