"""Areas over perturbation curves seed by seed, and how far single images agree about them. numpy and pyarrow only."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pyarrow as pa

from restudy.studies.relevance_evaluation.tidy import BySeed, Tables, by_seed, minus, over, ranks, replicates, where

LRP, SENSITIVITY, DECONVOLUTION, EDGES = "lrp_alpha_beta", "sensitivity", "deconvolution", "edges"
FASHION, DIGITS, GARMENTS = "fashion_mnist", "mnist5k", "garments"
PAIRS = (FASHION, DIGITS, GARMENTS)
FILLS = ("uniform", "mean", "blur", "dataset", "black")
SHARE, REGION = 0.16, 4
RANKED = (SENSITIVITY, DECONVOLUTION, LRP, "lrp_epsilon", "gradient_x_input")


def area(tables: Tables, pair: str, method: str, fill: str, order: str = "morf", **more: object) -> BySeed:
    """AOPC of a method over the mean unperturbed logit, seed by seed."""
    chosen = {"pair": pair, "region": REGION, "fill": fill, "method": method, "order": order}
    chosen |= {"score": "logit", "share": SHARE} | more
    return over(by_seed(tables["aopc"], "value", **chosen), by_seed(tables["aopc"], "start", **chosen))


def between_curves(tables: Tables, pair: str, method: str, fill: str) -> BySeed:
    """ABPC: AOPC of the most relevant first minus that of the least relevant first, share of the logit."""
    return minus(*(area(tables, pair, method, fill, order) for order in ("morf", "lerf")))


def settings(tables: Tables, *, black: bool = False) -> dict[tuple[str, str, str, int, float, str], BySeed]:
    """(pair, rival, fill, region, share, score) -> seed -> AOPC of LRP minus that of the rival."""
    table = where(tables["aopc"], order="morf")
    found = {}
    names = ("region", "share", "score")
    regions, shares, scores = (sorted(set(table[name].to_pylist())) for name in names)
    for fill, region, share, score in product(FILLS if black else FILLS[:-1], regions, shares, scores):
        for pair in PAIRS:
            rows = where(table, fill=fill, region=region, share=share, score=score, pair=pair)
            if rows.num_rows:
                lrp = by_seed(rows, method=LRP)
                for other in (SENSITIVITY, DECONVOLUTION):
                    found[pair, other, fill, region, share, score] = minus(lrp, by_seed(rows, method=other))
    return found


def krippendorff_alpha(ratings: np.ndarray) -> float:
    """Krippendorff's alpha of interval data without gaps, ratings (raters, items); 1 is agreement, 0 chance."""
    raters, items = ratings.shape
    count = raters * items
    within = float(np.square(ratings[:, None, :] - ratings[None, :, :]).sum()) / (raters - 1)
    flat = ratings.ravel()
    between = 2.0 * (count * float(np.square(flat).sum()) - float(flat.sum()) ** 2) / (count - 1)
    return 1.0 - within / between if between > 0 else math.nan


def image_ranks(tables: Tables, pair: str, fill: str, seed: int) -> np.ndarray:
    """Ranks of the five methods by AOPC on single images, (images, methods)."""
    chosen = {"pair": pair, "region": REGION, "fill": fill, "order": "morf", "score": "logit", "share": SHARE}
    rows = where(tables["aopc"], seed=seed, **chosen)
    by_method = dict(zip(rows["method"].to_pylist(), rows["values"].to_pylist(), strict=True))
    return ranks(np.array([by_method[method] for method in RANKED]).T)


def ranking_alpha(tables: Tables) -> pa.Table:
    """Krippendorff's alpha over the images' rankings of five methods, garments on photographs, uniform fill."""
    seeds = sorted(set(tables["aopc"]["seed"].to_pylist()))
    return replicates({s: krippendorff_alpha(image_ranks(tables, GARMENTS, "uniform", s)) for s in seeds})


def ranking_alpha_of_means(tables: Tables) -> pa.Table:
    """Control: alpha over four groups of images, of the mean AOPC of sensitivity and LRP under black, Fashion-MNIST."""
    chosen = {"pair": FASHION, "region": REGION, "fill": "black", "order": "morf", "score": "logit", "share": SHARE}
    found = {}
    for seed in sorted(set(tables["aopc"]["seed"].to_pylist())):
        rows = where(tables["aopc"], seed=seed, **chosen)
        values = dict(zip(rows["method"].to_pylist(), rows["values"].to_pylist(), strict=True))
        both = np.array([values[SENSITIVITY], values[LRP]])
        groups = [part.mean(1) for part in np.array_split(both, 4, axis=1)]
        found[seed] = krippendorff_alpha(np.array(groups))
    return replicates(found)
