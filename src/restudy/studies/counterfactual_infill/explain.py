"""Stage `explain`: masks by FIDO and BBMP, every in-filler and penalty, for scenes that are classified rightly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.errors import RestudyError
from restudy.methods.infilling import Masks, Settings, bbmp, fido
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory, load_checkpoint, save_checkpoint
from restudy.studies.counterfactual_infill.nets import Nets, load_nets
from restudy.studies.counterfactual_infill.scenes import Scenes, make
from restudy.studies.counterfactual_infill.tidy import TRACES

BUDGET = 50.0
"""Penalty of hiding everything in the paper: .001 per pixel of 224 x 224."""
POOL = 40
TRACE_POINTS = 25


def explain_scenes(
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
    """Optimise masks.

    Returns the tensors `masks`: `s<seed>/<method>/<infiller>/r<restart>`, (penalties, images, 1, grid, grid), where the
    methods are `sdr`, `ssr`, `joint` and `bbmp`; `s<seed>/scenes/...`, what is explained, `s<seed>/penalties`. And the
    table `traces`, the objective while it falls.
    """
    keep_freed_memory()
    settings = Settings(grid, iterations, learning_rate, samples)
    runs = [("sdr", name, 0) for name in infillers] + [("sdr", name, 1) for name in restart_infillers]
    runs += [("bbmp", name, 0) for name in bbmp_infillers] + [("ssr", name, 0) for name in ssr_infillers]
    runs += [("joint", name, 0) for name in joint_infillers]
    tensors: dict[str, Tensor] = {}
    traces: list[dict[str, Any]] = []
    for seed in seeds:
        nets = load_nets(context.tensors("weights"), seed, context.device)
        chosen = explained(nets, images, seed, context.device)
        for method, name, restart in runs:
            path = context.checkpoints / f"s{seed}-{method}-{name}-r{restart}.pt"
            content = load_checkpoint(path)
            if content is None:
                made = _masks(nets, chosen, method, name, restart, penalties, seed, settings)
                content = {"grid": made.grid.cpu(), "trace": made.trace.cpu()}
                save_checkpoint(path, content)
            tensors[f"s{seed}/{method}/{name}/r{restart}"] = content["grid"]
            where = {"seed": seed, "method": method, "infiller": name, "restart": restart}
            traces += [
                where | {"penalty": penalty, "iteration": step, "objective": float(line[step])}
                for penalty, line in zip(penalties, content["trace"], strict=True)
                for step in range(0, iterations, max(1, iterations // TRACE_POINTS))
            ]
        tensors |= {f"s{seed}/scenes/{name}": part.cpu().contiguous() for name, part in vars(chosen).items()}
        tensors[f"s{seed}/penalties"] = torch.tensor(list(penalties), dtype=torch.float64)
    return {"masks": tensors, "traces": pa.Table.from_pylist(traces, schema=TRACES)}


def explained(nets: Nets, images: int, seed: int, device: str) -> Scenes:
    """The first test scenes of a seed that are classified rightly, and otherwise once the object is gone.

    The second condition makes sure that there is something to find: no removal could change the class of a scene whose
    ground alone is given that class.

    Raises:
        RestudyError: there are too few of them.
    """
    pool = make("test", POOL * images, nets.canvas, nets.classes, seed, "explained").to(device)
    with torch.no_grad():
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


def _masks(
    nets: Nets,
    chosen: Scenes,
    method: str,
    name: str,
    restart: int,
    penalties: Sequence[float],
    seed: int,
    settings: Settings,
) -> Masks:
    """All penalties of one method and in-filler; `penalties` are in units of 50 / number of pixels."""
    weights = [BUDGET / nets.canvas**2 * penalty for penalty in penalties]
    seeds = [derive_seed(seed, "masks", restart, i) for i in range(len(chosen))]
    infiller = nets.infiller(name)
    if method == "bbmp":
        return bbmp(nets.classifier, chosen.images, chosen.labels, infiller, weights, seeds, settings=settings)
    return fido(
        nets.classifier,
        chosen.images,
        chosen.labels,
        infiller,
        weights,
        seeds,
        objective=method,  # type: ignore[arg-type]
        settings=settings,
    )
