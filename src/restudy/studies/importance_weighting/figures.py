"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restudy.contrasts import Measure
from restudy.plotting.parts import (
    Band,
    Names,
    band,
    bare,
    dots,
    interval,
    legend_below,
    mean_mark,
    over_seeds,
    panels,
    picture,
    stacked,
    ticks_at,
)
from restudy.plotting.style import COLOURS
from restudy.tables import Tables, by_seed, levels, ordered, where

from .arms import Arm, largest_k, plain_arms
from .statistics import ACTIVE, VAE, active, gap, nll

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBJECTIVES = Names({"vae": "VAE", "iwae": "IWAE", "stl": "STL", "dreg": "DReG"})
DASHED: dict[str, Any] = {"color": "0.3", "linestyle": "--"}


def arm_label(name: str) -> str:
    """Write `iwae_k10_fixed` as `IWAE k=10, fixed`."""
    objective, k, *rest = name.split("_")
    return ", ".join([f"{OBJECTIVES[objective]} {k.replace('k', 'k=')}", *([" ".join(rest)] if rest else [])])


def _look(arm: str) -> dict[str, Any]:
    return OBJECTIVES.styles[Arm.parse(arm).objective]


def _ends(table: pa.Table) -> tuple[str, str]:
    """Names of the VAE with one sample and of the IWAE with the largest k of the run."""
    return VAE, f"iwae_k{largest_k(set(levels(table, 'arm')))}"


def _k_axis(axis: Axes, ks: list[int], label: str = "k") -> None:
    """Make x a log axis with the k that were run as its only ticks."""
    axis.set(xscale="log", xlabel=label)
    ticks_at(axis, ks)


def nll_and_units(tables: Tables) -> Figure:
    """NLL relative to the VAE with k = 1, and active units, against k."""
    names = set(levels(tables["likelihood"], "arm"))

    def above_vae(name: str) -> Measure:
        return nll(name) - nll(VAE)

    shown: set[int] = set()
    with panels(2.9, columns=2) as (drawn, (axes,)):
        for objective in ("vae", "iwae"):
            arms = {1: VAE} | {arm.k: arm.name for arm in plain_arms(names, objective)}
            look = OBJECTIVES.styles[objective]
            for axis, measured in zip(axes, (above_vae, active), strict=True):
                samples = [measured(name).values(tables) for name in arms.values()]
                axis.plot(list(arms), Band.of(arms, samples).mean, label=OBJECTIVES[objective], **look)
                for k, sample in zip(arms, samples, strict=True):
                    dots(axis, k, sample, color=look["color"], alpha=0.4, markersize=4)
                    mean_mark(axis, k, sample, color=look["color"], marker=look["marker"], capsize=3)
            shown |= arms.keys()
        for axis, label in zip(axes, ("NLL minus that of the VAE, nats", "active units"), strict=True):
            _k_axis(axis, sorted(shown), "samples k in training")
            axis.set(ylabel=label)
        axes[0].legend()
    return drawn


def bounds(tables: Tables) -> Figure:
    """L_k against k on trained networks and on the solvable model."""
    table, toy = where(tables["bounds"], metric="bound"), tables["toy_bounds"]
    with panels(2.7, columns=2) as (drawn, (axes,)):
        for arm in reversed(levels(table, "arm")):
            band(axes[0], over_seeds(table, "k", arm=arm), _look(arm), arm_label(arm))
        ks, mean = ordered(toy, "k", metric="bound")
        axes[1].errorbar(ks, mean, 3 * ordered(toy, "k", metric="standard_error")[1], marker="o", capsize=3)
        axes[1].axhline(ordered(toy, "k", metric="log_likelihood")[1][0], label="log p(x)", **DASHED)
        axes[0].set(xscale="log", xlabel="k", ylabel="L_k of test images, nats", title="trained networks")
        axes[1].set(xscale="log", xlabel="k", ylabel="L_k, nats", title="linear Gaussian model")
        for axis in axes:
            axis.legend(loc="lower right")
    return drawn


def units(tables: Tables) -> Figure:
    """Histograms of the log variance of units, one panel for each plain arm with the smallest or the largest k."""
    table = where(tables["units"], metric="variance", layer=1)
    vae, iwae = _ends(table)
    shown = [name for name in (vae, iwae.replace("iwae", "vae"), iwae) if name in levels(table, "arm")]
    seeds = len(levels(table))
    bins = np.linspace(-4, 1, 41).tolist()
    with panels(2.4, columns=len(shown), sharey=True) as (drawn, (axes,)):
        for axis, name in zip(axes, shown, strict=True):
            values = np.log10(np.maximum(where(table, arm=name)["value"].to_numpy(), 1e-4))
            axis.hist(values, bins=bins, color=_look(name)["color"])
            axis.axvline(np.log10(ACTIVE), **DASHED)
            axis.set(title=arm_label(name), xlabel="log10 variance")
        axes[0].set_ylabel(f"units, {seeds} seed{'s' if seeds > 1 else ''}")
    return drawn


def curves(tables: Tables) -> Figure:
    """L_10 of test images and active units against steps, continuations after the dotted line."""
    table = tables["training"]
    ends = _ends(table)
    with panels(3.1, columns=2) as (drawn, (axes,)):
        for axis, metric in zip(axes, ("test_bound", "active_units_1"), strict=True):
            for start in ends:
                for after in (None, *ends):
                    arm, label, dash = start, arm_label(start), "-"
                    if after is not None:
                        arm, label = f"{start}_then_{after}", f"{label}, then {arm_label(after)}"
                        dash = "--" if after.startswith("iwae") else ":"
                    curve = over_seeds(table, "step", arm=arm, metric=metric)
                    if len(curve.x):
                        axis.plot(curve.x, curve.mean, color=_look(start)["color"], linestyle=dash, label=label)
            last = max(where(table, arm=VAE)["step"].to_pylist())
            axis.axvline(last, color="0.5", linestyle=":", linewidth=0.8)
            axis.set(xlabel="steps")
        best = max(where(table, metric="test_bound")["value"].to_pylist())
        axes[0].set(ylabel="L_10 of test images, nats", ylim=(best - 12, best + 1))
        axes[1].set(ylabel="active units")
        legend_below(drawn, axes[1], 3, fontsize=7)
    return drawn


def pixels(tables: Tables) -> Figure:
    """NLL of training and test images, for every arm that has a twin with fixed pixels."""
    table = where(tables["likelihood"], metric="nll")
    fixed = [name for name in levels(where(table, part="train"), "arm") if "_fixed" in name]
    with panels(2.9, columns=max(len(fixed), 1), sharey=True) as (drawn, (axes,)):
        for axis, name in zip(axes, fixed, strict=False):
            twin = name.replace("_fixed", "")
            for x, arm, label, colour in ((0, twin, "resampled", COLOURS[0]), (3, name, "fixed", COLOURS[1])):
                train, test = (by_seed(table, arm=arm, part=part) for part in ("train", "test"))
                for i, seed in enumerate(train):
                    once = label if i == 0 else None
                    line = [train[seed], test[seed]]
                    axis.plot([x, x + 1], line, color=colour, marker=".", linewidth=0.8, label=once)
                mean, half = interval(gap(arm).values(tables))
                place = (x + 0.5, max(test.values()))
                axis.annotate(f"{mean:.1f} ± {half:.1f}", place, ha="center", va="bottom", fontsize=7)
            axis.set_xticks([0, 1, 3, 4], ["train", "test"] * 2, fontsize=7)
            axis.set_title(arm_label(twin), fontsize=8)
        axes[0].set_ylabel("NLL, nats")
        axes[0].legend(fontsize=7)
    return drawn


def _signal_lines(axis: Axes, table: pa.Table) -> None:
    """Signal-to-noise of every seed, and its geometric mean, against k."""
    for objective in ("iwae", "stl", "dreg"):
        look = OBJECTIVES.styles[objective]
        ks, values = stacked(table, "k", objective=objective, metric="signal_to_noise")
        for line in values:
            axis.plot(ks, line, color=look["color"], alpha=0.25, linewidth=0.7)
        axis.plot(ks, np.exp(np.nanmean(np.log(values), axis=0)), label=OBJECTIVES[objective], **look)
    axis.set(yscale="log", ylabel="signal-to-noise ratio")
    _k_axis(axis, levels(table, "k"))


def toy_signal(tables: Tables) -> Figure:
    """Signal-to-noise and distance of the mean on the linear Gaussian model."""
    table = tables["toy_gradients"]
    with panels(2.8, columns=2) as (drawn, (axes,)):
        _signal_lines(axes[0], table)
        for objective in ("stl", "dreg"):
            ks, lengths = stacked(table, "k", objective=objective, metric="distance")
            errors = stacked(table, "k", objective=objective, metric="distance_error")[1]
            look = OBJECTIVES.styles[objective]
            axes[1].plot(ks, (lengths / errors).mean(0), label=OBJECTIVES[objective], **look)
        axes[1].axhline(3, **DASHED)
        axes[1].set(yscale="log", ylabel="distance from IWAE's mean, s.e.")
        _k_axis(axes[1], levels(table, "k"))
        axes[0].legend()
    return drawn


def signal(tables: Tables) -> Figure:
    """Signal-to-noise on trained networks, encoder and decoder."""
    with panels(2.8, columns=2) as (drawn, (axes,)):
        for axis, parameters in zip(axes, ("encoder", "decoder"), strict=True):
            _signal_lines(axis, where(tables["signal"], parameters=parameters, arm=VAE))
            axis.set_title(f"all {parameters} parameters")
        axes[0].legend()
    return drawn


def samples(tables: Tables) -> Figure:
    """Test images and samples of the first seed, one row for each kind."""
    table = tables["samples"]
    shown = [name for name in _ends(table) if name in levels(table, "arm")]
    rows = [("test images", where(table, arm=shown[0], kind="test image"))] if shown else []
    rows += [(arm_label(name), where(table, arm=name, kind="sample")) for name in shown]
    height, width = max(len(rows), 1), max(len(levels(table, "image")), 1)
    with panels(0.85 * height + 0.2, rows=height, columns=width) as (drawn, axes):
        bare(axes)
        for line, (title, found) in zip(axes, rows, strict=False):
            for axis, row in zip(line, found.sort_by("image").to_pylist(), strict=False):
                axis.imshow(picture(row), cmap="gray_r", vmin=0, vmax=1)
            line[0].set_title(title, fontsize=7, loc="left")
    return drawn
