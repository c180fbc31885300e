"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.parts import (
    GUIDE,
    Band,
    Names,
    band,
    bare,
    each_line,
    legend_below,
    outer_labels,
    over_seeds,
    panels,
    picture,
)
from restudy.plotting.style import COLOURS
from restudy.tables import Tables, arrays, by_seed, levels, ordered, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARMS = Names(
    {
        "full": "all summed",
        "rb1": "RB k=1",
        "rb5_plus": "RB k=5 +",
        "reinforce": "REINFORCE",
        "reinforce2": "REINFORCE x 2",
        "reinforce_plus": "REINFORCE +",
        "rb1_plus": "RB k=1 +",
        "gumbel": "Gumbel-softmax",
        "nvil": "NVIL",
        "relax": "RELAX",
        "rebar": "REBAR",
        "gumbel_soft": "Gumbel, soft",
        "known_place": "place known",
    }
)
"""`+` marks a second draw as baseline."""
VARIANCES = {
    "reinforce": ("REINFORCE", "reinforce"),
    "reinforce_plus_shared": ("second draw, shared", "rb1_plus"),
    "reinforce_plus_fresh": ("second draw, fresh", "reinforce_plus"),
}
"""Estimator -> label, and the arm whose look it has."""
GRADIENTS = {0.0: -0.045, -4.0: -0.0031792871}
"""The exact gradient of the toy at the two eta."""


def paths(tables: Tables) -> Figure:
    """One panel per arm: the loss of every run of seed 0, and the share of all runs that arrive."""
    arms = ARMS.present(tables["paths"], "arm")
    with panels(3.4, 2, (len(arms) + 1) // 2, sharex=True, sharey=True) as (drawn, axes):
        for axis, arm in zip(axes.flat, arms, strict=False):
            for _, step, loss in each_line(tables["paths"], "run", "step", "loss", arm=arm):
                axis.plot(step, loss, color=ARMS.styles[arm]["color"], linewidth=0.7)
            axis.axhline(0.70, **GUIDE)
            share = np.mean([*by_seed(tables["toy"], arm=arm, metric="reached").values()])
            axis.set_title(f"{ARMS[arm]}: {share:.0%} arrive", fontsize=8)
        outer_labels(axes, "step", "loss")
    return drawn


def variance(tables: Tables) -> Figure:
    """Box plots of drawn values and exact standard deviations against k, at both eta."""

    def deviations(eta: float, **columns: Any) -> Any:
        k, values = ordered(tables["variances"], "k", eta=eta, **columns)
        return k, np.sqrt(np.maximum(values, 1e-14))

    with panels(4.6, 2, 2) as (drawn, axes):
        for column, (eta, exact) in enumerate(GRADIENTS.items()):
            top, low = axes[:, column]
            values = [where(tables["draws"], eta=eta, k=k)["value"].to_numpy() for k in range(8)]
            top.boxplot(values, positions=range(8), widths=0.6, showfliers=eta == 0.0, flierprops={"markersize": 2})
            top.axhline(exact, color=COLOURS[1], linewidth=0.8)
            top.set(title=f"eta = {eta:g}", ylabel="estimate" if column == 0 else "")
            for name, (label, arm) in VARIANCES.items():
                low.plot(*deviations(eta, estimator=name, metric="exact"), label=label, **ARMS.styles[arm])
            low.plot(*deviations(eta, metric="empirical"), "k.", label="drawn")
            low.set(yscale="log", xlabel="k, categories summed", ylabel="standard deviation" if column == 0 else "")
        axes[1, 0].legend(fontsize=7)
    return drawn


def optimal_k(tables: Tables) -> Figure:
    """Variance against k relative to plain draws, and how far k_hat is from the best."""
    table = tables["optimal"]
    alpha, n, k, hat, variance = arrays(table, "alpha", "evaluations", "k", "k_hat", "variance")
    case = table["seed"].to_numpy() * (table["case"].to_numpy().max() + 1) + table["case"].to_numpy()
    with panels(2.6, 1, 2) as (drawn, axes):
        left, right = axes[0]
        for colour, (label, chosen) in zip(
            COLOURS[:2],
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
        right.axvline(2, color=COLOURS[1], linestyle="--")
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


def by_evaluations(rows: pa.Table, curve: Band, **columns: Any) -> Band:
    """The same curve against evaluations of f in the place of epochs."""
    return curve._replace(x=over_seeds(rows, "evaluations", **columns).x)


def validation(tables: Tables) -> Figure:
    """Negative ELBO above full summation against epochs and evaluations, and accuracy; 95% t bands."""
    table = where(tables["semi_validation"], start="warm")
    with panels(2.9, 1, 3) as (drawn, axes):
        for arm in ARMS.present(table, "arm"):
            look = ARMS.styled(arm, markersize=3)
            if arm != "full":
                above = over_seeds(table, "epoch", minus={"arm": "full"}, arm=arm, metric="nelbo")
                band(axes[0, 0], above, look, ARMS[arm])
                band(axes[0, 1], by_evaluations(table, above, arm=arm, metric="nelbo"), look, ARMS[arm])
            band(axes[0, 2], over_seeds(table, "epoch", arm=arm, metric="accuracy"), look, ARMS[arm])
        axes[0, 0].set(xlabel="epoch", ylabel="nats above all summed")
        axes[0, 1].set(xlabel="evaluations of f")
        axes[0, 2].set(xlabel="epoch", ylabel="accuracy")
        legend_below(drawn, axes[0, 2], 4, fontsize=7)
    return drawn


def moving(tables: Tables) -> Figure:
    """Negative ELBO against epochs and evaluations, and share located; 95% t bands."""
    table = tables["moving_validation"]
    arms = ARMS.present(table, "arm")
    with panels(2.9, 1, 3) as (drawn, axes):
        for arm in arms:
            look, curve = ARMS.styled(arm, markersize=3), over_seeds(table, "epoch", arm=arm, metric="nelbo")
            band(axes[0, 0], curve, look, ARMS[arm])
            band(axes[0, 1], by_evaluations(table, curve, arm=arm, metric="nelbo"), look, ARMS[arm])
            if arm != "known_place":
                band(axes[0, 2], over_seeds(table, "epoch", arm=arm, metric="located"), look, ARMS[arm])
        guess = over_seeds(table, "epoch", arm=arms[0], metric="constant_guess")
        axes[0, 2].axhline(float(guess.mean[0]), color="0.4", linestyle=":")
        axes[0, 0].set(xlabel="epoch", ylabel="negative ELBO, nats")
        axes[0, 1].set(xlabel="evaluations of f")
        axes[0, 2].set(xlabel="epoch", ylabel="located within 2 px", ylim=(0, 1.02))
        legend_below(drawn, axes[0, 0], 4, fontsize=7)
    return drawn


def attention(tables: Tables) -> Figure:
    """Rows are images; columns the canvas, then attention and reconstruction of every arm that looks."""
    table = where(tables["attention"], seed=0)
    arms = [arm for arm in ARMS.present(table, "arm") if arm != "known_place"]
    images = levels(table, "image")
    shown = [(arms[0], "canvas", "canvas")]
    shown += [(arm, kind, f"{ARMS[arm]}\n{kind}") for arm in arms for kind in ("attention", "reconstruction")]
    with panels(1.0 * len(images) + 0.4, max(len(images), 1), len(shown)) as (drawn, axes):
        bare(axes)
        for row, image in enumerate(images):
            for axis, (arm, kind, title) in zip(axes[row], shown, strict=True):
                values = picture(where(table, arm=arm, image=image, kind=kind).to_pylist()[0])
                axis.imshow(values, cmap="gray_r", vmin=0, vmax=values.max() if kind == "attention" else 1)
                axis.set_title(title if row == 0 else "", fontsize=6)
    return drawn
