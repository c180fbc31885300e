"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.parts import (
    GUIDE,
    Names,
    bare,
    cell_texts,
    heat_map,
    legend_below,
    mean_mark,
    over_seeds,
    panels,
    picture,
)
from restudy.tables import Tables, levels, where

from .statistics import HEURISTICS, fill, grids, means, odd_change, tuned

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INFILLERS = Names(
    zeros="zeros",
    mean="grey",
    blur="blur",
    noise="noise",
    local="local mean",
    vae="VAE",
    gan="GAN",
    judge="regression",
    ground="true ground",
)
CAPITALS = {"sdr": "FIDO SDR", "ssr": "FIDO SSR", "bbmp": "BBMP"}
FIDO = (*HEURISTICS, "vae", "gan")
DELETION = tuple(("sdr", name) for name in FIDO)
OTHER_MASKS = (("bbmp", "blur"), ("bbmp", "vae"), ("joint", "mean"))
ORDERS = (("gradient", ""), ("occlusion", "mean"))


def _named(method: str, infiller: str) -> str:
    """Write method and in-filler as they stand in a legend."""
    return ", ".join([CAPITALS.get(method, method), *([INFILLERS[infiller]] if infiller else [])])


def _show(axis: Axes, rows: pa.Table, cmap: str = "gray", vmax: float | None = 1) -> None:
    """Show the picture of the first row, where there is one."""
    for row in rows.to_pylist()[:1]:
        axis.imshow(picture(row), cmap=cmap, vmin=0, vmax=vmax)


def maps(tables: Tables) -> Figure:
    """Rows are scenes; columns the scene and its maps."""
    table = tables["pictures"]
    images = levels(table, "image")
    columns = (("scene", ""), *DELETION, ("ssr", "vae"), *OTHER_MASKS, *ORDERS)
    with panels(0.62 * len(images) + 0.4, rows=len(images), columns=len(columns)) as (drawn, axes):
        bare(axes)
        for line, image in zip(axes, images, strict=True):
            for axis, (method, infiller) in zip(line, columns, strict=True):
                rows = where(table, image=image, row=method, column=infiller)
                cmap = "gray" if method == "scene" else "magma"
                _show(axis, rows, cmap, None if (method, infiller) in ORDERS else 1)
                if image == images[0] and rows.num_rows:
                    title = CAPITALS.get(method, method).replace("FIDO ", "")
                    axis.set_title(f"{title}\n{INFILLERS.get(infiller, '')}", fontsize=6)
    return drawn


def fills(tables: Tables) -> Figure:
    """For each scene two rows, a hole anywhere and the object's square; columns are in-fillers."""
    table = tables["samples"]
    lines = [(image, hole) for image in levels(table, "image") for hole in ("anywhere", "object")]
    columns = ("scene", "hole", *INFILLERS)
    with panels(0.6 * len(lines) + 0.3, rows=len(lines), columns=len(columns)) as (drawn, axes):
        bare(axes)
        for line, (image, hole) in zip(axes, lines, strict=True):
            for axis, column in zip(line, columns, strict=True):
                row, filled = {"scene": ("scene", "hidden"), "hole": (hole, "hidden")}.get(column, (hole, column))
                _show(axis, where(table, image=image, row=row, column=filled))
        for axis, column in zip(axes[0], columns, strict=True):
            axis.set_title(INFILLERS.get(column, column), fontsize=6)
    return drawn


def trade_off(tables: Tables) -> Figure:
    """Area against log-odds left, by in-filler, under three judges."""
    titles = {"own": "its own in-filler", "judge": "the regression", "ground": "the true ground"}
    with panels(2.9, columns=3, sharey=True) as (drawn, axes):
        for axis, (judge, title) in zip(axes[0], titles.items(), strict=True):
            metrics = ("area", f"log_odds_{judge}")
            for name in FIDO:
                area, left = (np.mean([*means(tables, m, "sdr", name).values()], axis=0) for m in metrics)
                axis.plot(area, left, label=INFILLERS[name], **INFILLERS.styles[name])
            axis.axhline(0, **GUIDE)
            axis.set(title=f"filled by {title}", xlabel="area, share of the scene")
        axes[0, 0].set_ylabel("log-odds of the class")
        legend_below(drawn, axes[0, 0], 5)
    return drawn


def flipping(tables: Tables) -> Figure:
    """Box plots of flipping areas at the tuned penalty, all seeds."""
    arms = (*DELETION, *OTHER_MASKS, ("ssr", "vae"), *reversed(ORDERS), ("random", ""))
    values = [np.concatenate(list(tuned(tables, "flipping_area_judge", *arm).values())) for arm in arms]
    with panels(3.4) as (drawn, axes):
        axis = axes[0, 0]
        axis.boxplot(values, vert=False, widths=0.6, flierprops={"markersize": 2})
        axis.set_yticks(range(1, len(arms) + 1), [_named(*arm) for arm in arms])
        axis.set(xscale="log", xlabel="share of the pixels filled in until the class changes")
        axis.invert_yaxis()
    return drawn


def removal(tables: Tables) -> Figure:
    """Removal curves at the penalty tuned for each arm."""
    shown = (("sdr", "vae"), ("sdr", "blur"), ("bbmp", "vae"), ("bbmp", "blur"), ("gradient", ""), ("random", ""))
    colours = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#7F7F7F")
    with panels(3.0) as (drawn, axes):
        for (method, infiller), colour in zip(shown, colours, strict=True):
            best = []
            for seed, penalties, held_out in grids(tables, "removal_auc_judge", method, infiller, split="tune"):
                arm = {"seed": seed, "method": method, "infiller": infiller, "restart": 0}
                best.append(where(tables["curves"], penalty=float(penalties[np.argmin(held_out.mean(1))]), **arm))
            curve = over_seeds(pa.concat_tables(best), "fraction", "log_odds")
            axes[0, 0].plot(curve.x, curve.mean, color=colour, label=_named(method, infiller))
        axes[0, 0].axhline(0, **GUIDE)
        axes[0, 0].set(xlabel="share of the pixels filled in", ylabel="log-odds of the class")
        axes[0, 0].legend(ncols=2)
    return drawn


def quality(tables: Tables) -> Figure:
    """Four measures of fills by in-filler."""
    titles = {
        "distance": "distance from real scenes",
        "odd_change": "change of score, empty square",
        "seam": "seam, |log ratio|",
        "hidden_excess": "accuracy above chance, object hidden",
    }
    names = INFILLERS.present(tables["fills"], "infiller")
    with panels(4.4, rows=2, columns=2, sharey=True) as (drawn, axes):
        for axis, (metric, title) in zip(axes.flat, titles.items(), strict=True):
            for place, name in enumerate(names):
                number = odd_change(infiller=name) if metric == "odd_change" else fill(infiller=name, metric=metric)
                look: dict[str, Any] = INFILLERS.styles[name]
                sample = number.values(tables)
                mean_mark(axis, place, sample, across=True, fmt=look["marker"], color=look["color"], capsize=2)
            axis.set_title(title)
            axis.set_yticks(range(len(names)), [INFILLERS[name] for name in names])
        axes[0, 0].invert_yaxis()
    return drawn


def judges(tables: Tables) -> Figure:
    """Log-odds left, by the in-filler of the optimisation and that of the judge."""
    names = (*FIDO, "judge", "ground")
    left = [[means(tables, f"log_odds_{judge}", "sdr", name).values() for judge in names] for name in FIDO]
    values = np.array([[np.mean([v[min(1, len(v) - 1)] for v in cell]) for cell in line] for line in left])
    middle = (values.min() + values.max()) / 2
    with panels(3.0) as (drawn, axes):
        axis = axes[0, 0]
        heat_map(axis, values, [INFILLERS[n] for n in FIDO], [INFILLERS[n] for n in names], cmap="viridis")
        cell_texts(axis, values, lambda value: f"{value:.1f}", lambda value: "white" if value < middle else "black")
        axis.set(xlabel="filled in by", ylabel="region found with")
    return drawn


def traces(tables: Tables) -> Figure:
    """The objective while it falls, mean over seeds."""
    table = where(tables["traces"], restart=0, penalty=0.6)
    with panels(2.8, columns=2) as (drawn, axes):
        for axis, methods in zip(axes[0], (("sdr",), ("ssr", "joint", "bbmp")), strict=True):
            for method in methods:
                for name in levels(where(table, method=method), "infiller"):
                    curve = over_seeds(table, "iteration", "objective", method=method, infiller=name)
                    axis.plot(curve.x, curve.mean, label=_named(method, name), linewidth=1.2)
            axis.set_xlabel("iteration")
            axis.legend(fontsize=7)
        axes[0, 0].set_ylabel("score + penalty")
    return drawn
