"""Curves, boxes and dots, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.counterfactual_infill.drawing import INFILLERS, LOOKS, arm_name, mean_and_half
from restudy.studies.counterfactual_infill.paths import grids, means, tuned
from restudy.studies.counterfactual_infill.tidy import by_seed, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
FIDO = ("mean", "blur", "noise", "vae", "gan")
ARMS = (
    *(("sdr", name) for name in FIDO),
    *(("bbmp", "blur"), ("bbmp", "vae"), ("joint", "mean"), ("ssr", "vae")),
    *(("occlusion", "mean"), ("gradient", ""), ("random", "")),
)


def trade_off(tables: Tables) -> Figure:
    """Area against log-odds left, by in-filler, under three judges."""
    titles = {"own": "its own in-filler", "judge": "the regression", "ground": "the true ground"}
    with style():
        drawn, axes = figure(2.9, columns=3, sharey=True)
        for axis, (judge, title) in zip(axes[0], titles.items(), strict=True):
            for name in FIDO:
                area, left = (
                    np.mean(list(means(tables, metric, "sdr", name).values()), axis=0)
                    for metric in ("area", f"log_odds_{judge}")
                )
                axis.plot(area, left, label=INFILLERS[name], **LOOKS[name])
            axis.axhline(0, color="0.4", linestyle="--", linewidth=0.8)
            axis.set(title=f"filled by {title}", xlabel="area, share of the scene")
        axes[0, 0].set_ylabel("log-odds of the class")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=5)
    return drawn


def flipping_areas(tables: Tables) -> Figure:
    """Box plots of flipping areas at the tuned penalty, all seeds."""
    with style():
        drawn, axes = figure(3.4)
        axis = axes[0, 0]
        values = [np.concatenate(list(tuned(tables, "flipping_area_judge", *arm).values())) for arm in ARMS]
        axis.boxplot(values, vert=False, widths=0.6, flierprops={"markersize": 2})
        axis.set_yticks(range(1, len(ARMS) + 1), [arm_name(*arm) for arm in ARMS])
        axis.set(xscale="log", xlabel="share of the pixels filled in until the class changes")
        axis.invert_yaxis()
    return drawn


def removal(tables: Tables) -> Figure:
    """Removal curves at the penalty tuned for each arm."""
    shown = (("sdr", "vae"), ("sdr", "blur"), ("bbmp", "vae"), ("bbmp", "blur"), ("gradient", ""), ("random", ""))
    colours = ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#009E73", "#7F7F7F")
    with style():
        drawn, axes = figure(3.0)
        for (method, infiller), colour in zip(shown, colours, strict=True):
            lines = []
            for seed, penalties, held_out in grids(tables, "removal_auc_judge", method, infiller, split="tune"):
                best = float(penalties[int(np.argmin(held_out.mean(1)))])
                arm = {"seed": seed, "method": method, "infiller": infiller, "restart": 0, "penalty": best}
                rows = where(tables["curves"], **arm).sort_by("fraction")
                lines.append(rows["log_odds"].to_numpy())
            axes[0, 0].plot(
                rows["fraction"].to_numpy(), np.mean(lines, axis=0), color=colour, label=arm_name(method, infiller)
            )
        axes[0, 0].axhline(0, color="0.4", linestyle="--", linewidth=0.8)
        axes[0, 0].set(xlabel="share of the pixels filled in", ylabel="log-odds of the class")
        axes[0, 0].legend(ncols=2)
    return drawn


def fill_quality(tables: Tables) -> Figure:
    """Four measures of fills by in-filler."""
    titles = {
        "distance": "distance from real scenes",
        "odd_change": "change of score, empty square",
        "seam": "seam, |log ratio|",
        "hidden_excess": "accuracy above chance, object hidden",
    }
    table = tables["fills"]
    names = [name for name in INFILLERS if name in set(table["infiller"].to_pylist())]
    with style():
        drawn, axes = figure(4.4, rows=2, columns=2, sharey=True)
        for axis, (metric, title) in zip(axes.flat, titles.items(), strict=True):
            for place, name in enumerate(names):
                found = by_seed(table, metric=metric, infiller=name)
                if metric == "odd_change":
                    rows = where(table, metric=metric, infiller=name)
                    found = {s: float(np.median(where(rows, seed=s)["value"].to_numpy())) for s in found}
                middle, half = mean_and_half(list(found.values()))
                look = LOOKS[name]
                axis.errorbar(middle, place, xerr=half, fmt=look["marker"], color=look["color"], capsize=2)
            axis.set_title(title)
            axis.set_yticks(range(len(names)), [INFILLERS[name] for name in names])
        axes[0, 0].invert_yaxis()
    return drawn


def judge_matrix(tables: Tables) -> Figure:
    """Log-odds left, by the in-filler of the optimisation and that of the judge."""
    judges = (*FIDO, "judge", "ground")
    left = [[means(tables, f"log_odds_{j}", "sdr", name).values() for j in judges] for name in FIDO]
    values = np.array([[np.mean([v[min(1, len(v) - 1)] for v in cell]) for cell in line] for line in left])
    with style():
        drawn, axes = figure(3.0)
        axis = axes[0, 0]
        axis.imshow(values, cmap="viridis", aspect="auto")
        middle = (values.min() + values.max()) / 2
        for row, line in enumerate(values):
            for column, value in enumerate(line):
                colour = "white" if value < middle else "black"
                axis.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour)
        axis.set_xticks(range(len(judges)), [INFILLERS[j] for j in judges])
        axis.set_yticks(range(len(FIDO)), [INFILLERS[name] for name in FIDO])
        axis.set(xlabel="filled in by", ylabel="region found with")
        axis.grid(False)
    return drawn


def traces(tables: Tables) -> Figure:
    """The objective while it falls, mean over seeds."""
    table = where(tables["traces"], restart=0, penalty=0.6)
    with style():
        drawn, axes = figure(2.8, columns=2)
        for axis, methods in zip(axes[0], (("sdr",), ("ssr", "joint", "bbmp")), strict=True):
            for method in methods:
                for name in sorted(set(where(table, method=method)["infiller"].to_pylist())):
                    rows = where(table, method=method, infiller=name)
                    steps, values = rows["iteration"].to_numpy(), rows["objective"].to_numpy()
                    known = np.unique(steps)
                    line = [values[steps == step].mean() for step in known]
                    axis.plot(known, line, label=arm_name(method, name), linewidth=1.2)
            axis.set_xlabel("iteration")
            axis.legend(fontsize=7)
        axes[0, 0].set_ylabel("score + penalty")
    return drawn
