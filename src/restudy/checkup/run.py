"""Both sanity checks, region perturbation and complexity on a model of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.checkup import drawing, measure
from restudy.checkup.images import Images
from restudy.checkup.judge import VERDICTS, perturbation_verdicts, randomization_verdicts, refusals
from restudy.checkup.page import page
from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.relevance import applicable, heatmap
from restudy.own_model import as_typed, called_on, check_device, check_folder, one_line
from restudy.plotting.save import figure_bytes
from restudy.results import table_bytes, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = (
    "sensitivity",
    "gradient_x_input",
    "integrated_gradients",
    "smoothgrad",
    "guided_backprop",
    "deconvolution",
) + ("gradcam", "lrp_epsilon", "lrp_alpha_beta")
FILLS = ("uniform", "mean", "blur", "black")
_NUMBER = [("image", pa.int64()), ("value", pa.float64()), ("unit", pa.string())]
SCHEMAS = {
    "randomization": pa.schema(
        [("order", pa.string()), ("depth", pa.int64()), ("layers", pa.int64()), ("layer", pa.string())]
        + [("method", pa.string()), ("metric", pa.string()), *_NUMBER]
    ),
    "perturbation": pa.schema(
        [("fill", pa.string()), ("method", pa.string()), ("region", pa.int64()), ("steps", pa.int64()), *_NUMBER]
    ),
    "complexity": pa.schema([("method", pa.string()), ("metric", pa.string()), *_NUMBER]),
    "maps": pa.schema(
        [("image", pa.int64()), ("name", pa.string()), ("method", pa.string()), ("height", pa.int64())]
        + [("width", pa.int64()), ("values", pa.list_(pa.float32()))]
    ),
    "verdicts": VERDICTS,
}


@dataclass(frozen=True)
class Options:
    """How a check is made.

    Attributes:
        methods: heatmaps that are checked. fills: what takes the place of a region. region: side of the regions in
            pixels; an eighth of the image's shorter side by default. share: share of the regions that is replaced.
        draws: draws of a random fill. random_orders: random orders, averaged. states: states of a cascade that are
            looked at. seed: of weights, fills, orders and noise. batch_size: images in a pass.
    """

    methods: tuple[str, ...] = METHODS
    fills: tuple[str, ...] = ("uniform", "mean", "blur")
    region: int | None = None
    share: float = 0.16
    draws: int = 2
    random_orders: int = 5
    states: int = 5
    seed: int = 0
    batch_size: int = 32
    device: str = "cpu"

    def check(self) -> None:
        """Raise ConfigError, in one line, for what makes no sense."""
        for name in self.methods:
            try:
                heatmap(name)
            except ConfigError as error:
                raise ConfigError(f"--methods: {error.what}", where="check", remedy=error.remedy) from None
        unknown = [name for name in self.fills if name not in FILLS]
        counts = (self.draws, self.random_orders)
        checks = [
            (bool(self.methods), "--methods", "none", "at least one"),
            (bool(self.fills) and not unknown, "--fills", ", ".join(self.fills) or "none", ", ".join(FILLS)),
            (self.region is None or self.region >= 1, "--region", self.region, "at least 1 pixel"),
            (0 < self.share <= 1, "share", self.share, "above 0, at most 1"),
            (self.batch_size >= 1, "--batch-size", self.batch_size, "at least 1"),
            (min(counts) >= 1, "draws, random orders", counts, "at least 1"),
            (self.states >= 2, "--states", self.states, "at least 2"),
        ]
        for fine, name, value, allowed in checks:
            if not fine:
                raise ConfigError(f"{name}: {value}", where="check", remedy=f"allowed: {allowed}")
        check_device(self.device)


def check_model(
    model: nn.Module,
    images: Images,
    folder: Path,
    options: Options | None = None,
    shown: Mapping[str, str] | None = None,
) -> dict[str, pa.Table]:
    """Check the heatmaps of a model and write tables, figures and a page into a folder.

    Args:
        model: maps (N, C, H, W) to logits (N, classes); comes back unchanged.
        images: from `load_images`. The class explained is the label where there are labels, else the prediction.
        folder: gets randomization, perturbation, complexity, maps and verdicts as .parquet, maps, cascade and areas as
            .svg, .png and .pdf, and index.html; made if absent. shown: the options as the page lists them.

    Returns:
        The tables by name. A method that the model does not have is refused by name in `verdicts`; a model whose layers
        cannot be drawn anew has no `randomization`, and the page says why.

    Raises:
        ConfigError: options or images that do not fit, a model that returns something else than logits.
    """
    options = options or Options()
    options.check()
    check_folder(folder)
    model.to(options.device)
    inputs = images.inputs.to(options.device)
    predicted, target = _classes(model, images, inputs, options)
    facts = _facts(images, predicted.cpu())
    refused = {name: why for name in options.methods if (why := _refusal(model, name, inputs))}
    methods = [name for name in options.methods if name not in refused]
    size = {"batch_size": options.batch_size}
    side = min(inputs.shape[2:])
    if options.region and 2 * options.region > side:
        what = f"--region {options.region} on images of {side} pixels"
        raise ConfigError(what, where="check", remedy=f"give at most {side // 2}")
    own = measure.maps_of(model, inputs, target, methods, seed=derive_seed(options.seed, "noise"), **size)
    rows: dict[str, list[dict[str, Any]]] = {"complexity": list(measure.complexity_rows(own)), "randomization": []}
    try:
        rows["randomization"] = list(
            measure.randomization_rows(model, inputs, target, own, states=options.states, seed=options.seed, **size)
        )
    except ConfigError as error:
        facts.append(f"No randomisation: {error}")
    rows["perturbation"] = list(
        measure.perturbation_rows(
            model, inputs, target, own, measure.fills(options.fills, images.low, images.high, side),
            region=options.region or max(1, round(side / 8)), share=options.share, draws=options.draws,
            random_orders=options.random_orders, seed=options.seed, **size,
        )
    )  # fmt: skip
    rows["maps"] = _pictures(images, own)
    tables = {name: pa.Table.from_pylist(found, schema=SCHEMAS[name]) for name, found in rows.items()}
    judged = (*methods, *measure.CONTROLS)
    verdicts = randomization_verdicts(tables["randomization"], judged)
    verdicts += perturbation_verdicts(tables["perturbation"], judged) + refusals(refused)
    tables["verdicts"] = pa.Table.from_pylist(verdicts, schema=VERDICTS)
    _write(tables, folder, type(model).__name__, facts, shown or as_typed(asdict(options)))
    return tables


def _classes(model: nn.Module, images: Images, inputs: Tensor, options: Options) -> tuple[Tensor, Tensor]:
    """The predicted and the explained classes; ConfigError for pictures, labels or a model that will not do."""
    if not bool(torch.isfinite(inputs).all()):
        bad = int((~torch.isfinite(inputs).flatten(1).all(1)).nonzero()[0])
        raise ConfigError("has pixels that are not finite", where=images.names[bad], remedy="leave it out or mend it")
    scores = _logits(model, inputs, options.batch_size)
    _check_gradients(model, inputs[:1])
    predicted = scores.argmax(1)
    if images.labels is not None and not 0 <= int(images.labels.min()) <= int(images.labels.max()) < scores.shape[1]:
        ends = f"{int(images.labels.min())} to {int(images.labels.max())}"
        remedy = f"labels are 0 to {scores.shape[1] - 1} for this model"
        raise ConfigError(f"the labels are {ends}", where="--labels", remedy=remedy)
    return predicted, predicted if images.labels is None else images.labels.to(options.device)


def _logits(model: nn.Module, inputs: Tensor, batch_size: int) -> Tensor:
    modes = [(module, module.training) for module in model.modules()]
    try:
        model.eval()
        with torch.no_grad():
            logits = [model(part) for part in inputs.split(batch_size)]  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever a user's model raises
        raise ConfigError(
            f"the model refuses images of {tuple(inputs.shape[1:])}: {one_line(error)}",
            where=type(model).__name__,
            remedy="give --size and --channels, or mend its forward",
        ) from None
    finally:
        for module, training in modes:
            module.training = training
    if not all(isinstance(part, Tensor) and part.dim() == 2 for part in logits):
        found = tuple(logits[0].shape) if isinstance(logits[0], Tensor) else type(logits[0]).__name__
        raise ConfigError(
            f"the model returns {found}",
            where=type(model).__name__,
            remedy="return logits (images, classes), one tensor",
        )
    scores = torch.cat(logits)
    if not bool(torch.isfinite(scores).all()):
        bad = int((~torch.isfinite(scores).all(1)).nonzero()[0])
        remedy = "look at its weights, and at --mean and --std"
        raise ConfigError(f"the logits of image {bad + 1} are not finite", where="check", remedy=remedy)
    return scores


def _check_gradients(model: nn.Module, inputs: Tensor) -> None:
    """Raise ConfigError where the logits have no gradient with respect to the pictures: no method could be defined."""
    modes = [(module, module.training) for module in model.modules()]
    leaf = inputs.detach().clone().requires_grad_(True)
    try:
        model.eval()
        logits = called_on(model, lambda: model(leaf), {"images": inputs})
    finally:
        for module, training in modes:
            module.training = training
    if not logits.requires_grad:
        remedy = "forward must not run under torch.no_grad, nor detach"
        raise ConfigError("the logits have no gradient", where=type(model).__name__, remedy=remedy)


def _refusal(model: nn.Module, method: str, inputs: Tensor) -> str:
    fine, why = applicable(model, heatmap(method).method, inputs)
    return "" if fine else why


def _facts(images: Images, predicted: Tensor) -> list[str]:
    count, channels, height, width = images.inputs.shape
    kind = "grey" if channels == 1 else "colour"
    found = [f"{count} images, {kind}, {height} x {width} pixels."]
    if images.labels is None:
        found.append("The class explained is the one that the model predicts.")
    else:
        right = float((predicted == images.labels).double().mean())
        found.append(f"The class explained is the label; the model predicts it for {right:.0%} of the images.")
    return found


def _pictures(images: Images, maps: Mapping[str, Tensor]) -> list[dict[str, Any]]:
    found = []
    for number in range(min(drawing.SHOWN, len(images.names))):
        shown = {"input": images.inputs[number].mean(0), **{method: values[number] for method, values in maps.items()}}
        for method, values in shown.items():
            found.append(
                {"image": number, "name": images.names[number], "method": method, "height": values.shape[0],
                 "width": values.shape[1], "values": values.cpu().float().flatten().numpy()}
            )  # fmt: skip
    return found


def _write(tables: Mapping[str, pa.Table], folder: Path, name: str, facts: list[str], shown: Mapping[str, str]) -> None:
    for table, content in tables.items():
        write_atomically(folder / f"{table}.parquet", table_bytes(content))
    figures: dict[str, Figure] = {"maps": drawing.maps_figure(tables["maps"])}
    if tables["randomization"].num_rows:
        figures["cascade"] = drawing.cascade_figure(tables["randomization"])
    figures["areas"] = drawing.areas_figure(tables["perturbation"])
    for figure, drawn in figures.items():
        for suffix, content in figure_bytes(drawn).items():
            write_atomically(folder / f"{figure}.{suffix}", content)
    text = page(name, tables, facts, list(figures), shown)
    write_atomically(folder / "index.html", text.encode())
