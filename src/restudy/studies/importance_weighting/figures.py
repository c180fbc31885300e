"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import COLOURS, figure, style
from restudy.studies.importance_weighting.arms import Arm, largest_k, plain_arms
from restudy.studies.importance_weighting.drawing import LOOKS, OBJECTIVES, arm_label, mean_and_half, points
from restudy.studies.importance_weighting.statistics import ACTIVE
from restudy.studies.importance_weighting.tidy import BySeed, arms_of, by_seed, minus, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]


def _active(units: pa.Table, arm: str) -> BySeed:
    rows = where(units, arm=arm, layer=1, metric="variance")
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    return {seed: float((values[at == seed] > ACTIVE).sum()) for seed in sorted(set(at.tolist()))}


def _k_axes(axes: Any, ks: list[int], label: str = "k") -> None:
    """A log axis with the k that were run as its only ticks."""
    for axis in axes:
        axis.set(xscale="log", xlabel=label)
        axis.set_xticks(ks, [str(k) for k in ks])
        axis.minorticks_off()


def likelihood_and_units(tables: Tables) -> Figure:
    """NLL relative to the VAE with k = 1, and active units, against k."""
    table = where(tables["likelihood"], part="test", metric="nll")
    start = by_seed(table, arm="vae_k1")
    with style():
        drawn, (axes,) = figure(2.9, columns=2)
        for objective in ("vae", "iwae"):
            arms = {Arm("vae", 1), *plain_arms(arms_of(table), objective)}
            found = {a.k: minus(by_seed(table, arm=a.name), start) for a in arms}
            units = {a.k: _active(tables["units"], a.name) for a in arms}
            for axis, values in zip(axes, (found, units), strict=True):
                look, ks = LOOKS[objective], sorted(values)
                axis.plot(ks, [mean_and_half(values[k])[0] for k in ks], label=OBJECTIVES[objective], **look)
                for k in ks:
                    points(axis, k, values[k], look)
        _k_axes(
            axes,
            sorted({1, *(a.k for o in ("vae", "iwae") for a in plain_arms(arms_of(table), o))}),
            "samples k in training",
        )
        axes[0].set(ylabel="NLL minus that of the VAE, nats")
        axes[1].set(ylabel="active units")
        axes[0].legend()
    return drawn


def bounds_by_k(tables: Tables) -> Figure:
    """L_k against k on trained networks and on the solvable model."""
    table = where(tables["bounds"], metric="bound")
    with style():
        drawn, (axes,) = figure(2.7, columns=2)
        for arm in sorted(arms_of(table), reverse=True):
            ks = sorted(set(where(table, arm=arm)["k"].to_pylist()))
            found = [mean_and_half(by_seed(table, arm=arm, k=k)) for k in ks]
            mean, half = (np.array(x) for x in zip(*found, strict=True))
            look = LOOKS[Arm.parse(arm).objective]
            axes[0].plot(ks, mean, label=arm_label(arm), **look)
            axes[0].fill_between(ks, mean - half, mean + half, alpha=0.12, color=look["color"], linewidth=0)
        toy = tables["toy_bounds"]
        rows = {m: where(toy, metric=m).sort_by("k") for m in ("bound", "standard_error", "log_likelihood")}
        ks, mean = rows["bound"]["k"].to_numpy(), rows["bound"]["value"].to_numpy()
        axes[1].errorbar(ks, mean, 3 * rows["standard_error"]["value"].to_numpy(), marker="o", capsize=3)
        exact = rows["log_likelihood"]["value"].to_numpy()[0]
        axes[1].axhline(exact, color="0.3", linestyle="--", label="log p(x)")
        axes[0].set(xscale="log", xlabel="k", ylabel="L_k of test images, nats", title="trained networks")
        axes[1].set(xscale="log", xlabel="k", ylabel="L_k, nats", title="linear Gaussian model")
        for axis in axes:
            axis.legend(loc="lower right")
    return drawn


def unit_histograms(tables: Tables) -> Figure:
    """Histograms of the log variance of units, one panel for each plain arm with the smallest or the largest k."""
    units = where(tables["units"], metric="variance", layer=1)
    k = largest_k(arms_of(units))
    shown = [name for name in ("vae_k1", f"vae_k{k}", f"iwae_k{k}") if name in arms_of(units)]
    seeds = len(set(units["seed"].to_pylist()))
    bins = np.linspace(-4, 1, 41)
    with style():
        drawn, (axes,) = figure(2.4, columns=len(shown), sharey=True)
        for axis, name in zip(axes, shown, strict=True):
            values = np.log10(np.maximum(where(units, arm=name)["value"].to_numpy(), 1e-4))
            axis.hist(values, bins=bins.tolist(), color=LOOKS[Arm.parse(name).objective]["color"])
            axis.axvline(np.log10(ACTIVE), color="0.3", linestyle="--")
            axis.set(title=arm_label(name), xlabel="log10 variance")
        axes[0].set_ylabel(f"units, {seeds} seed{'s' if seeds > 1 else ''}")
    return drawn


def learning_curves(tables: Tables) -> Figure:
    """L_10 of test images and active units against steps, continuations after the dotted line."""
    table = tables["training"]
    k = largest_k(arms_of(table))
    pairs = [(start, after) for start in ("vae_k1", f"iwae_k{k}") for after in (None, "vae_k1", f"iwae_k{k}")]
    with style():
        drawn, (axes,) = figure(3.1, columns=2)
        for axis, metric in zip(axes, ("test_bound", "active_units_1"), strict=True):
            for start, after in pairs:
                name = start if after is None else f"{start}_then_{after}"
                rows = where(table, arm=name, metric=metric)
                if rows.num_rows:
                    _curve(axis, rows, start, after)
            first = where(table, arm="vae_k1")["step"].to_numpy()
            axis.axvline(first.max(), color="0.5", linestyle=":", linewidth=0.8)
            axis.set(xlabel="steps")
        best = where(table, metric="test_bound")["value"].to_numpy().max()
        axes[0].set(ylabel="L_10 of test images, nats", ylim=(best - 12, best + 1))
        axes[1].set(ylabel="active units")
        drawn.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    return drawn


def _curve(axis: Axes, rows: pa.Table, start: str, after: str | None) -> None:
    steps = sorted(set(rows["step"].to_pylist()))
    means = [float(np.mean(where(rows, step=step)["value"].to_numpy())) for step in steps]
    colour = LOOKS[Arm.parse(start).objective]["color"]
    dash = "-" if after is None else "--" if after.startswith("iwae") else ":"
    label = arm_label(start) if after is None else f"{arm_label(start)}, then {arm_label(after)}"
    axis.plot(steps, means, color=colour, linestyle=dash, label=label)


def fixed_and_resampled(tables: Tables) -> Figure:
    """NLL of training and test images, for every arm that has a twin with fixed pixels."""
    table = where(tables["likelihood"], metric="nll")
    fixed = sorted((Arm.parse(n) for n in arms_of(where(table, part="train")) if "_fixed" in n), key=lambda a: a.name)
    looks = {"resampled": COLOURS[0], "fixed": COLOURS[1]}
    with style():
        drawn, (axes,) = figure(2.9, columns=max(len(fixed), 1), sharey=True)
        for axis, arm in zip(axes, fixed, strict=False):
            twin = Arm(arm.objective, arm.k, arm.layers, False, arm.images)
            for shift, (label, name) in enumerate({"resampled": twin.name, "fixed": arm.name}.items()):
                train, test = (by_seed(table, arm=name, part=part) for part in ("train", "test"))
                for i, seed in enumerate(train):
                    axis.plot([shift * 3, shift * 3 + 1], [train[seed], test[seed]], color=looks[label], marker=".",
                              linewidth=0.8, label=label if i == 0 else None)  # fmt: skip
                gap = mean_and_half(minus(test, train))
                axis.annotate(f"{gap[0]:.1f} ± {gap[1]:.1f}", (shift * 3 + 0.5, max(test.values())), ha="center",
                              va="bottom", fontsize=7)  # fmt: skip
            axis.set_xticks([0, 1, 3, 4], ["train", "test"] * 2, fontsize=7)
            axis.set_title(arm_label(twin.name), fontsize=8)
        axes[0].set_ylabel("NLL, nats")
        axes[0].legend(fontsize=7)
    return drawn


def _signal_lines(axis: Axes, rows: pa.Table) -> None:
    for objective in ("iwae", "stl", "dreg"):
        found = where(rows, objective=objective, metric="signal_to_noise")
        ks = sorted(set(found["k"].to_pylist()))
        for seed in sorted(set(found["seed"].to_pylist())):
            line = where(found, seed=seed).sort_by("k")
            axis.plot(line["k"].to_numpy(), line["value"].to_numpy(), color=LOOKS[objective]["color"], alpha=0.25,
                      linewidth=0.7)  # fmt: skip
        means = [np.exp(np.nanmean(np.log(where(found, k=k)["value"].to_numpy()))) for k in ks]
        axis.plot(ks, means, label=OBJECTIVES[objective], **LOOKS[objective])
    axis.set(yscale="log", ylabel="signal-to-noise ratio")
    _k_axes([axis], ks)


def toy_signal(tables: Tables) -> Figure:
    """Signal-to-noise and distance of the mean on the linear Gaussian model."""
    table = tables["toy_gradients"]
    with style():
        drawn, (axes,) = figure(2.8, columns=2)
        _signal_lines(axes[0], table)
        for objective in ("stl", "dreg"):
            rows = where(table, objective=objective)
            ks = sorted(set(rows["k"].to_pylist()))
            ratio = [_ratio(where(rows, k=k)) for k in ks]
            axes[1].plot(ks, ratio, label=OBJECTIVES[objective], **LOOKS[objective])
        axes[1].axhline(3, color="0.3", linestyle="--")
        axes[1].set(yscale="log", ylabel="distance from IWAE's mean, s.e.")
        _k_axes([axes[1]], ks)
        axes[0].legend()
    return drawn


def _ratio(rows: pa.Table) -> float:
    length, error = (where(rows, metric=m)["value"].to_numpy() for m in ("distance", "distance_error"))
    return float(np.mean(length / error))


def trained_signal(tables: Tables) -> Figure:
    """Signal-to-noise on trained networks, encoder and decoder."""
    table = tables["signal"]
    with style():
        drawn, (axes,) = figure(2.8, columns=2)
        for axis, parameters in zip(axes, ("encoder", "decoder"), strict=True):
            _signal_lines(axis, where(table, parameters=parameters, arm="vae_k1"))
            axis.set_title(f"all {parameters} parameters")
        axes[0].legend()
    return drawn


def samples(tables: Tables) -> Figure:
    """Test images and samples of the first seed, one row for each kind."""
    table = tables["samples"]
    k = largest_k(arms_of(table))
    shown = [name for name in ("vae_k1", f"iwae_k{k}") if name in arms_of(table)]
    images = sorted(set(table["image"].to_pylist()))
    rows: list[tuple[str, Any]] = []
    if shown:
        rows.append(("test images", where(table, arm=shown[0], kind="test image")))
        rows += [(arm_label(name), where(table, arm=name, kind="sample")) for name in shown]
    with style():
        drawn, axes = figure(0.85 * max(len(rows), 1) + 0.2, rows=max(len(rows), 1), columns=max(len(images), 1))
        for axis in axes.flat:
            axis.set_axis_off()
        for line, (title, found) in zip(axes, rows, strict=False):
            for axis, row in zip(line, found.sort_by("image").to_pylist(), strict=False):
                axis.imshow(np.array(row["values"]).reshape(row["side"], -1), cmap="gray_r", vmin=0, vmax=1)
            line[0].set_title(title, fontsize=7, loc="left")
    return drawn
