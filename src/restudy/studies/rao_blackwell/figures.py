"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.rao_blackwell.drawing import ARM_NAMES, LOOKS, arms_of, mean_over_seeds, over_seeds
from restudy.studies.rao_blackwell.tidy import by_seed, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
GRADIENTS = {0.0: -0.045, -4.0: -0.0031792871}
"""The exact gradient of the toy at the two eta."""


def loss_paths(tables: Tables) -> Figure:
    """One panel per arm: the loss of every run of seed 0, and the share of all runs that arrive."""
    paths = tables["paths"]
    arms = arms_of(paths)
    with style():
        drawn, axes = figure(3.4, rows=2, columns=(len(arms) + 1) // 2, sharex=True, sharey=True)
        for axis, arm in zip(axes.flat, arms, strict=False):
            for run in sorted(set(paths["run"].to_pylist())):
                line = where(paths, arm=arm, run=run).sort_by("step")
                axis.plot(line["step"].to_numpy(), line["loss"].to_numpy(), color=LOOKS[arm]["color"], linewidth=0.7)
            axis.axhline(0.70, color="0.4", linestyle="--", linewidth=0.8)
            share = mean_over_seeds(by_seed(tables["toy"], arm=arm, metric="reached"))
            axis.set_title(f"{ARM_NAMES[arm]}: {share:.0%} arrive", fontsize=8)
        for axis in axes[:, 0]:
            axis.set_ylabel("loss")
        for axis in axes[-1]:
            axis.set_xlabel("step")
    return drawn


def variance_by_k(tables: Tables) -> Figure:
    """Box plots of drawn values and exact standard deviations against k, at both eta."""
    names = {
        "reinforce": "REINFORCE",
        "reinforce_plus_shared": "second draw, shared",
        "reinforce_plus_fresh": "second draw, fresh",
    }
    arms = {"reinforce": "reinforce", "reinforce_plus_shared": "rb1_plus", "reinforce_plus_fresh": "reinforce_plus"}
    with style():
        drawn, axes = figure(4.6, rows=2, columns=2)
        for column, (eta, exact) in enumerate(GRADIENTS.items()):
            top, low = axes[:, column]
            values = [where(tables["draws"], eta=eta, k=k)["value"].to_numpy() for k in range(8)]
            top.boxplot(values, positions=range(8), widths=0.6, showfliers=eta == 0.0, flierprops={"markersize": 2})
            top.axhline(exact, color="#D55E00", linewidth=0.8)
            top.set(title=f"eta = {eta:g}", ylabel="estimate" if column == 0 else "")
            for name, label in names.items():
                rows = where(tables["variances"], eta=eta, estimator=name, metric="exact").sort_by("k")
                deviation = np.sqrt(np.maximum(rows["value"].to_numpy(), 1e-14))
                low.plot(rows["k"].to_numpy(), deviation, label=label, **LOOKS[arms[name]])
            rows = where(tables["variances"], eta=eta, metric="empirical").sort_by("k")
            low.plot(rows["k"].to_numpy(), np.sqrt(np.maximum(rows["value"].to_numpy(), 1e-14)), "k.", label="drawn")
            low.set(yscale="log", xlabel="k, categories summed", ylabel="standard deviation" if column == 0 else "")
        axes[1, 0].legend(fontsize=7)
    return drawn


def optimal_numbers(tables: Tables) -> Figure:
    """Variance against k relative to plain draws, and how far k_hat is from the best."""
    table = tables["optimal"]
    alpha, n, k, hat, variance = (table[c].to_numpy() for c in ("alpha", "evaluations", "k", "k_hat", "variance"))
    case = table["seed"].to_numpy() * (table["case"].to_numpy().max() + 1) + table["case"].to_numpy()
    with style():
        drawn, axes = figure(2.6, columns=2)
        left, right = axes[0]
        for colour, (label, chosen) in zip(
            ("#0072B2", "#D55E00"),
            {"concentrated, alpha < .2": alpha < 0.2, "flat, alpha > 2": alpha > 2}.items(),
            strict=True,
        ):
            picked = chosen & (n == 8)
            plain = dict(zip(case[picked & (k == 0)], variance[picked & (k == 0)], strict=True))
            medians = []
            for value in range(8):
                here = picked & (k == value)
                ratios = [v / plain[c] for c, v in zip(case[here], variance[here], strict=True)]
                medians.append(max(float(np.median(ratios)), 1e-6) if ratios else np.nan)
            left.plot(range(8), medians, color=colour, marker="o", label=label)
            for place in np.unique(hat[picked & (k == 0)]):
                left.axvline(place, color=colour, linewidth=0.4, linestyle=":")
        left.set(yscale="log", xlabel="k of N = 8 evaluations", ylabel="variance / plain")
        left.legend(fontsize=7)
        right.hist(_ratios(case, n, k, hat, variance), bins=np.linspace(1, 4, 31).tolist(), color="0.4")
        right.axvline(2, color="#D55E00", linestyle="--")
        right.set(xlabel="variance at the formula's k / at the best k", ylabel="cases")
    return drawn


def _ratios(case: Any, n: Any, k: Any, hat: Any, variance: Any) -> Any:
    """Variance at k_hat over the least, cut at 4."""
    _, at = np.unique(case * 100 + n, return_inverse=True)
    best = np.full(at.max() + 1, np.inf)
    np.minimum.at(best, at, variance)
    chosen = np.empty(at.max() + 1)
    chosen[at[k == hat]] = variance[k == hat]
    return np.minimum(chosen / np.maximum(best, 1e-300), 4.0)


def validation_curves(tables: Tables) -> Figure:
    """Negative ELBO above full summation against epochs and evaluations, and accuracy; 95% t bands."""
    table = where(tables["semi_validation"], start="warm")
    arms = arms_of(table)
    with style():
        drawn, axes = figure(2.9, columns=3)
        for arm in arms:
            epochs, spent, mean, half = over_seeds(table, arm, "nelbo", "warm", minus="full")
            if arm != "full":
                _band(axes[0, 0], epochs, mean, half, arm)
                _band(axes[0, 1], spent, mean, half, arm)
            epochs, _, mean, half = over_seeds(table, arm, "accuracy", "warm")
            _band(axes[0, 2], epochs, mean, half, arm)
        axes[0, 0].set(xlabel="epoch", ylabel="nats above all summed")
        axes[0, 1].set(xlabel="evaluations of f")
        axes[0, 2].set(xlabel="epoch", ylabel="accuracy")
        handles, labels = axes[0, 2].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7)
    return drawn


def moving_curves(tables: Tables) -> Figure:
    """Negative ELBO against epochs and evaluations, and share located; 95% t bands."""
    table = tables["moving_validation"]
    arms = arms_of(table)
    with style():
        drawn, axes = figure(2.9, columns=3)
        for arm in arms:
            epochs, spent, mean, half = over_seeds(table, arm, "nelbo", "cold")
            _band(axes[0, 0], epochs, mean, half, arm)
            _band(axes[0, 1], spent, mean, half, arm)
            if arm == "known_place":
                continue
            epochs, _, mean, half = over_seeds(table, arm, "located", "cold")
            _band(axes[0, 2], epochs, mean, half, arm)
        _, _, guess, _ = over_seeds(table, arms[0], "constant_guess", "cold")
        axes[0, 2].axhline(float(guess[0]), color="0.4", linestyle=":")
        axes[0, 0].set(xlabel="epoch", ylabel="negative ELBO, nats")
        axes[0, 1].set(xlabel="evaluations of f")
        axes[0, 2].set(xlabel="epoch", ylabel="located within 2 px", ylim=(0, 1.02))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=7)
    return drawn


def _band(axis: Axes, x: Any, mean: Any, half: Any, arm: str) -> None:
    axis.plot(x, mean, label=ARM_NAMES[arm], markersize=3, **LOOKS[arm])
    axis.fill_between(x, mean - half, mean + half, alpha=0.12, color=LOOKS[arm]["color"], linewidth=0)


def attention_maps(tables: Tables) -> Figure:
    """Rows are images; columns the canvas, then attention and reconstruction of every arm that looks."""
    table = where(tables["attention"], seed=0)
    arms = [arm for arm in arms_of(table) if arm != "known_place"]
    images = sorted(set(table["image"].to_pylist()))
    with style():
        columns = 1 + 2 * len(arms)
        drawn, axes = figure(1.0 * len(images) + 0.4, rows=max(len(images), 1), columns=columns)
        for axis in axes.flat:
            axis.set_axis_off()
        for row, image in enumerate(images):
            shown = [(arms[0], "canvas", "canvas")]
            shown += [(a, kind, f"{ARM_NAMES[a]}\n{kind}") for a in arms for kind in ("attention", "reconstruction")]
            for axis, (arm, kind, title) in zip(axes[row], shown, strict=True):
                found = where(table, arm=arm, image=image, kind=kind).to_pylist()[0]
                picture = np.array(found["values"]).reshape(found["side"], -1)
                axis.imshow(picture, cmap="gray_r", vmin=0, vmax=picture.max() if kind == "attention" else 1)
                axis.set_title(title if row == 0 else "", fontsize=6)
    return drawn
