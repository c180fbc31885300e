"""The nets that both tests compare, and how alike their maps are.

Stage `train`: three arms per pair and seed. `true` is the net that is explained. `retrain` is an honest retraining from
other initial weights and another order of the same images: the yardstick of every drop in similarity. `permuted` learns
the labels of some of the images in a random permutation, from the same initial weights as `retrain`, until it knows
them by heart. Stage `measure`: maps of every method on every net of a seed, compared with those of the trained net.

Columns of `similarity`: `against`, what the maps are compared with (`trained`, `random_net`, or `edges`, the Sobel
magnitude of the image); `state`, the net whose maps they are; `depth`, `layer`, `redraw`, which layers were drawn anew;
`target`, the class explained: `fixed`, which the trained net predicts, or `recomputed`, which the randomised net
predicts. `value` is the mean over the images whose value is defined, NaN where none is; `undefined` counts the others.
Maps are flattened by rows; method `input` is the image itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.similarity import Reference, metrics, pool_channels
from restudy.methods.training import Epoch, History, evaluate, train_classifier
from restudy.methods.training.supervised import Precision

from .models import (
    CONTROLS,
    Explained,
    Role,
    Settings,
    Sizes,
    Step,
    as_inputs,
    build,
    chosen,
    load,
    maps,
    predicted,
    randomized,
    restore,
    steps,
    top_down_layers,
    usable,
)

Row = dict[str, Any]
ARMS = ("true", "retrain", "permuted")
HOG_CELL = 4  # pixels: with the paper's 16 the descriptor of a 28-pixel image would be empty
CHEAP = ("gradient", "guided_backprop")
TRAINED = Role("trained", 0, "")


@dataclass(frozen=True)
class Recipe:
    """How one arm is trained: passes over its images, batch size, and the accuracy that ends it (or None)."""

    epochs: int
    batch_size: int
    stop_at: float | None
    checkpoint_every: int


def train(
    context: Context,
    *,
    pair: str,
    seeds: Sequence[int],
    channels: Sequence[int],
    hidden: int,
    mlp_hidden: Sequence[int],
    init: str,
    train_images: int,
    images_seen: int,
    batch_size: int,
    learning_rate: float,
    permuted_images: int,
    permuted_epochs: int,
    permuted_batch_size: int,
    permuted_target: float,
    precision: Precision,
    channels_last: bool,
    test_images: int,
) -> Outputs:
    """Train the three arms of a pair for every seed.

    Returns `training` (accuracies in [0, 1] and epochs), `curves` (loss in nats and running accuracy by epoch) and
    the tensors `weights`, keyed `<pair>/s<seed>/<arm>/<parameter>`. The shapes of the models
    are those of the authors' released code; sizes and epochs are parameters.
    """
    sizes = Sizes.of(channels, hidden, mlp_hidden, init)
    data = load(pair)
    asked = chosen(test_images, len(data.test_labels), 0, "accuracy")
    test = (as_inputs(data.test_images[asked.numpy()]), torch.tensor(data.test_labels)[asked])
    settings: dict[str, Any] = {"learning_rate": learning_rate, "precision": precision}
    settings["channels_last"] = channels_last and pair.startswith("cnn")
    rows: list[Row] = []
    curves: list[Row] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        index = chosen(train_images, len(data.train_labels), seed, "train")
        images, labels = as_inputs(data.train_images[index.numpy()]), torch.tensor(data.train_labels)[index]
        usual = Recipe(max(1, round(images_seen / len(images))), batch_size, None, 1)
        hard = Recipe(permuted_epochs, permuted_batch_size, permuted_target, 10)
        few = images[:permuted_images], permuted(labels[:permuted_images], seed)
        live = context.live(seed)
        for arm in ARMS:
            recipe, shown = (hard, few) if arm == "permuted" else (usual, (images, labels))
            key = f"{pair}/s{seed}/{arm}"
            model = build(pair, sizes, arm_seed(seed, arm)).to(context.device)
            checkpoint = context.checkpoints / f"{key.replace('/', '-')}.pt"
            settings["on_epoch"] = partial(_watch, live, arm)
            history = _trained(model, shown, recipe, arm_seed(seed, arm), checkpoint, settings)
            where = {"pair": pair, "seed": seed, "arm": arm}
            rows += [where | found for found in _measured(model, shown, test, history)]
            curves += [where | vars(epoch) for epoch in history.epochs]
            weights |= {f"{key}/{name}": value.contiguous() for name, value in model.state_dict().items()}
        live.close()
    return {"training": rows, "curves": curves, "weights": weights}


def _watch(live: Any, arm: str, epoch: Epoch) -> None:
    """Send an epoch to the live curves, if anybody watches."""
    live.log(epoch.epoch, **{f"{arm}_loss_nats": epoch.loss_nats, f"{arm}_accuracy": epoch.accuracy})


def _trained(
    model: nn.Module,
    shown: tuple[Tensor, Tensor],
    recipe: Recipe,
    seed: int,
    checkpoint: Path,
    settings: Mapping[str, Any],
) -> History:
    return train_classifier(
        model,
        *shown,
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        seed=seed,
        stop_at_train_accuracy=recipe.stop_at,
        checkpoint=checkpoint,
        checkpoint_every=recipe.checkpoint_every,
        **settings,
    )


def arm_seed(seed: int, arm: str) -> int:
    """The seed of an arm's initial weights and order; `retrain` and `permuted` share one, `true` has its own."""
    return derive_seed(seed, "arm", "true" if arm == "true" else "retrain")


def permuted(labels: Tensor, seed: int) -> Tensor:
    """The same labels in a random order (int64, (N,)): nothing systematic is left to learn."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "permuted labels"))
    return labels[torch.randperm(len(labels), generator=generator)]


def _measured(
    model: nn.Module, shown: tuple[Tensor, Tensor], test: tuple[Tensor, Tensor], history: History
) -> list[Row]:
    """Accuracies after training on the arm's own labels and on the true test labels, and the epochs it took."""
    _, on_train = evaluate(model, *shown)
    _, on_test = evaluate(model, *test)
    return [
        {"metric": "train_accuracy", "value": on_train, "unit": "1"},
        {"metric": "test_accuracy", "value": on_test, "unit": "1"},
        {"metric": "epochs", "value": float(len(history.epochs)), "unit": "epochs"},
    ]


class References:
    """The maps of one net by method, prepared for comparison with those of many others."""

    def __init__(self, maps: Mapping[str, Tensor], mask: Tensor | None, cell: int) -> None:
        self.cell = cell
        self.mask = None if mask is None else mask.cpu().numpy()
        self._prepared = {name: self._reference(values) for name, values in maps.items()}

    def _reference(self, values: Tensor) -> Reference:
        return Reference(signed(values), mask=self.mask, cell=self.cell)

    def rows(
        self,
        where: Mapping[str, Any],
        maps: Mapping[str, Tensor],
        names: Sequence[str] | None = None,
    ) -> list[Row]:
        """Rows for every method of `maps` that this net has too; `where` holds the other columns."""
        chosen = names if names is not None else metrics(foreground=self.mask is not None)
        found = []
        for method, values in maps.items():
            if method in self._prepared:
                compared = self._prepared[method].compare(self._reference(values), chosen)
                found += [dict(where) | {"method": method} | summary(m, v) for m, v in compared.items()]
        return found

    def against_edges(self, where: Mapping[str, Any], maps: Mapping[str, Tensor]) -> list[Row]:
        """Rows of absolute rank correlation between each method's map and the edges of the image."""
        edges = self._prepared["edges"]
        names = ["spearman_abs", *(["spearman_abs_foreground"] if self.mask is not None else [])]
        found = []
        for method, values in maps.items():
            if method != "edges":
                compared = edges.compare(self._reference(values), names)
                found += [dict(where) | {"method": method} | summary(m, v) for m, v in compared.items()]
        return found


def signed(values: Tensor) -> Any:
    """Maps (N, C, H, W) as (N, H, W), channels summed so that the sign is kept."""
    return pool_channels(values, "sum")


def summary(metric: str, values: Any) -> Row:
    """Mean over the images with a defined value, the number of images and of undefined values."""
    missing = int(np.isnan(values).sum())
    return {
        "metric": metric,
        "value": float(np.nanmean(values)) if missing < len(values) else float("nan"),
        "unit": "1",
        "images": len(values),
        "undefined": missing,
    }


def measure(
    context: Context,
    *,
    pair: str,
    seeds: Sequence[int],
    channels: Sequence[int],
    hidden: int,
    mlp_hidden: Sequence[int],
    init: str,
    methods: Sequence[str],
    orders: Sequence[str],
    images: int,
    ig_steps: int,
    samples: int,
    sg_ig_samples: int,
    sg_ig_steps: int,
    top_redraws: int,
    full_redraws: int,
    examples: int,
    batch_size: int,
) -> Outputs:
    """Both tests on the nets of some seeds.

    Returns `similarity` (a row per comparison, method and metric) and `maps` (the first `examples`
    images of seed 0). The class explained is the one that the trained net predicts, for all nets.
    """
    sizes = Sizes.of(channels, hidden, mlp_hidden, init)
    settings = Settings(ig_steps, samples, sg_ig_samples, sg_ig_steps, batch_size)
    weights = context.tensors("weights")
    test_images = load(pair).test_images
    rows: list[Row] = []
    kept: list[Row] = []
    for seed in seeds:
        index = chosen(images, len(test_images), seed, "test")
        shown = as_inputs(test_images[index.numpy()]).to(context.device)

        def net(arm: str, seed: int = seed) -> nn.Module:
            model = restore(build(pair, sizes, 0), weights, f"{pair}/s{seed}/{arm}").to(context.device)
            if pair.startswith("cnn"):
                model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            return model

        trained = net("true")
        case = Case(pair, seed, trained, shown, usable(trained, methods, shown), settings)
        rows += case.compare_all(net, orders, top_redraws, full_redraws)
        if seed == 0:
            kept += case.examples(examples)
    return {"similarity": rows, "maps": kept}


class Case:
    """One trained net with the images that it is asked about, and all that is compared with it."""

    def __init__(
        self, pair: str, seed: int, trained: nn.Module, images: Tensor, methods: Sequence[str], settings: Settings
    ) -> None:
        self.pair, self.seed, self.trained, self.methods, self.settings = pair, seed, trained, methods, settings
        target = predicted(trained, images, settings.batch_size)
        self.shown = Explained(images, target, derive_seed(seed, "noise"))
        self._kept: list[tuple[Role, Mapping[str, Tensor]]] = []

    def where(self, against: str, role: Role, redraw: int = 0, target: str = "fixed") -> dict[str, Any]:
        """The columns that say what was compared with what."""
        place = {"state": role.state, "depth": role.depth, "layer": role.layer, "redraw": redraw}
        return {"pair": self.pair, "seed": self.seed, "against": against, **place, "target": target}

    def maps(self, model: nn.Module, role: Role, redraw: int = 0) -> dict[str, Tensor]:
        """All maps of a net; the noise control is drawn anew for each."""
        control = derive_seed(self.seed, "noise control", role.state, role.depth, redraw)
        return maps(model, self.shown, self.methods, self.settings, control_seed=control)

    def compare_all(self, net: Any, orders: Sequence[str], top_redraws: int, full_redraws: int) -> list[Row]:
        """Rows of the model-parameter test, of the data test, of the yardstick and of the controls."""
        own = self.maps(self.trained, TRAINED)
        mask = self.shown.images[:, 0] > 0
        self.reference = References(own, mask, HOG_CELL)
        self._kept.append((TRAINED, own))
        rows = self.reference.against_edges(self.where("edges", TRAINED), own)
        full: list[dict[str, Tensor]] = []
        layers = top_down_layers(self.trained)
        for step in steps(layers, orders=orders, top_redraws=top_redraws, full_redraws=full_redraws):
            model = randomized(self.trained, step, self.seed)
            found = self.maps(model, step.roles[0], step.redraw)
            rows += self._step_rows(step, model, found)
            if len(step.layers) == len(layers):
                full.append(found)
        for name, arm in (("seed_retrain", "retrain"), ("permuted_labels", "permuted")):
            role = Role(name, 0, "")
            found = self.maps(net(arm), role)
            rows += self.reference.rows(self.where("trained", role), found)
            self._kept.append((role, found))
        if len(full) > 1:
            pair = References(full[0], mask, HOG_CELL)
            rows += pair.rows(self.where("random_net", Role("two_random_nets", 0, "")), full[1])
        return rows

    def _step_rows(self, step: Step, model: nn.Module, found: Mapping[str, Tensor]) -> Iterator[Row]:
        first = self.reference.rows(self.where("trained", step.roles[0], step.redraw), found)
        for role in step.roles:
            place = {"state": role.state, "depth": role.depth, "layer": role.layer}
            yield from (row | place for row in first)
            if step.redraw == 0 and role.state != "independent":
                self._kept.append((role, found))
        role = step.roles[0]
        if role.state == "top_down":
            yield from self.reference.against_edges(self.where("edges", role, step.redraw), found)
            cheap = [m for m in CHEAP if m in self.methods]
            target = predicted(model, self.shown.images, self.settings.batch_size)
            anew = Explained(self.shown.images, target, self.shown.noise_seed)
            again = maps(model, anew, cheap, self.settings, control_seed=0)
            again = {m: again[m] for m in cheap}
            yield from self.reference.rows(
                self.where("trained", role, step.redraw, "recomputed"), again, ("spearman", "spearman_abs")
            )

    def examples(self, count: int) -> list[Row]:
        """Rows of the table `maps` for the first images: the input and every method's map on every kept net."""
        images = self.shown.images[:count]
        rows = [self._example(TRAINED, "input", number, images[number]) for number in range(len(images))]
        for role, found in self._kept:
            for method, values in found.items():
                if method not in CONTROLS or role == TRAINED:
                    rows += [self._example(role, method, number, values[number]) for number in range(len(images))]
        return rows

    def _example(self, role: Role, method: str, number: int, values: Tensor) -> dict[str, Any]:
        array = signed(values[None])[0]
        place = {"state": role.state, "depth": role.depth, "layer": role.layer}
        size = {"height": array.shape[0], "width": array.shape[1]}
        flat = {"values": array.astype("float32").ravel()}
        return {"pair": self.pair, "seed": self.seed, "image": number, **place, "method": method, **size, **flat}
