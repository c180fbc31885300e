"""Stage `measure`: maps of every method on every net of a seed, compared with those of the trained net."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.studies.saliency_sanity import nets
from restudy.studies.saliency_sanity.compare import SIMILARITY, References, signed
from restudy.studies.saliency_sanity.explain import CONTROLS, Explained, Settings, maps, predicted, usable
from restudy.studies.saliency_sanity.states import Role, Step, randomized, steps, top_down_layers

HOG_CELL = 4  # pixels: with the paper's 16 the descriptor of a 28-pixel image would be empty
CHEAP = ("gradient", "guided_backprop")
TRAINED = Role("trained", 0, "")

MAPS = pa.schema(
    [("pair", pa.string()), ("seed", pa.int64()), ("image", pa.int64()), ("state", pa.string())]
    + [("depth", pa.int64()), ("layer", pa.string()), ("method", pa.string())]
    + [("height", pa.int64()), ("width", pa.int64()), ("values", pa.list_(pa.float32()))]
)
"""Maps of a few images for the figures, flattened by rows; method `input` is the image itself."""


def measure_maps(
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

    Returns `similarity` (means over the images of a seed, see `compare.SIMILARITY`) and `maps` (the first `examples`
    images of seed 0). The class explained is the one that the trained net predicts, for all nets.
    """
    sizes = nets.Sizes.of(channels, hidden, mlp_hidden, init)
    settings = Settings(ig_steps, samples, sg_ig_samples, sg_ig_steps, batch_size)
    weights = context.tensors("weights")
    test_images = nets.load(pair).test_images
    rows: list[dict[str, Any]] = []
    kept: list[dict[str, Any]] = []
    for seed in seeds:
        index = nets.chosen(images, len(test_images), seed, "test")
        shown = nets.as_inputs(test_images[index.numpy()]).to(context.device)

        def net(arm: str, seed: int = seed) -> nn.Module:
            model = nets.restore(nets.build(pair, sizes, 0), weights, f"{pair}/s{seed}/{arm}").to(context.device)
            if pair.startswith("cnn"):
                model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            return model

        trained = net("true")
        case = Case(pair, seed, trained, shown, usable(trained, methods, shown), settings)
        rows += case.compare_all(net, orders, top_redraws, full_redraws)
        if seed == 0:
            kept += case.examples(examples)
    return {
        "similarity": pa.Table.from_pylist(rows, schema=SIMILARITY),
        "maps": pa.Table.from_pylist(kept, schema=MAPS),
    }


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

    def compare_all(self, net: Any, orders: Sequence[str], top_redraws: int, full_redraws: int) -> list[dict[str, Any]]:
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

    def _step_rows(self, step: Step, model: nn.Module, found: Mapping[str, Tensor]) -> Iterator[dict[str, Any]]:
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

    def examples(self, count: int) -> list[dict[str, Any]]:
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
