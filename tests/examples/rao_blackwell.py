"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, cases, declared, grid, long

SEEDS = 6
IDENTITIES = {
    "R1": ("mean",),
    "R2": ("bound", "empirical"),
    "R7": ("product rule", "score function"),
    "R8": ("bias", "shortfall"),
    "R9": ("law", "conditional", "variance", "chi_square"),
}
# arm -> share that arrives, mean loss
TOY = {
    "full": (1.0, 0.734),
    "reinforce": (0.48, 0.780),
    "reinforce2": (0.50, 0.778),
    "rb1": (1.0, 0.744),
    "reinforce_plus": (1.0, 0.744),
    "rb1_plus": (1.0, 0.735),
}
# arm -> final negative ELBO, accuracy
SEMI = {
    "full": (250.0, 0.72),
    "rb1": (250.8, 0.70),
    "reinforce2": (255.0, 0.40),
    "reinforce_plus": (252.0, 0.66),
    "nvil": (252.5, 0.60),
    "gumbel": (251.2, 0.69),
}
# arm -> final negative ELBO, share located, evaluations per step
MOVING = {
    "known_place": (70.0, 1.0, 1),
    "rb5_plus": (75.0, 0.90, 7),
    "reinforce_plus": (90.0, 0.50, 2),
    "gumbel": (110.0, 0.20, 1),
}


def variances() -> Iterator[Row]:
    kinds = [("reinforce", "exact"), ("reinforce", "empirical")]
    kinds += [("reinforce_plus_fresh", "exact"), ("reinforce_plus_shared", "exact")]
    for eta, base, ratio in ((0.0, 0.44, 0.45), (-4.0, 0.034, 0.002)):
        for estimator, metric in kinds:
            for k in range(8):
                place = {"eta": eta, "estimator": estimator, "k": k, "outside": 1 - k / 8}
                yield from long(place, {metric: base * ratio**k})


def toy() -> Iterator[Row]:
    generator = np.random.default_rng(0)
    for where in grid(arm=TOY, seed=range(SEEDS), run=range(20)):
        share, loss = TOY[where["arm"]]
        reached = share == 1.0 or generator.random() < share
        yield from long(where, {"reached": reached, "mean_loss": loss + generator.normal(0, 0.004), "final_loss": 0.67})


def optimal() -> Iterator[Row]:
    generator = np.random.default_rng(1)
    for where in grid(seed=range(SEEDS), case=range(40), evaluations=(2, 8)):
        near = generator.random() < 0.95
        for k in range(where["evaluations"]):
            variance = {0: 1.0, 1: 0.2 if near else 0.9}.get(k, 0.2 * k)
            found = {"alpha": 0.1 if where["case"] % 2 else 3.0, "k": k, "k_hat": 1, "variance": variance}
            yield where | found


def curve(where: Row, metric: str, first: float, last: float, per_step: int, noise: float) -> Iterator[Row]:
    for epoch, steps, share in ((0, 0, 0.0), (1, 10, 0.97), (2, 200, 1.0)):
        place = where | {"epoch": epoch, "steps": steps, "evaluations": steps * per_step}
        yield from long(place, {metric: first + (last - first) * share + noise * epoch})


def semi_validation() -> Iterator[Row]:
    generator = np.random.default_rng(2)
    for where in grid(seed=range(SEEDS), start=("warm", "cold"), arm=SEMI):
        nelbo, accuracy = SEMI[where["arm"]]
        yield from curve(where, "nelbo", 300.0, nelbo, 2, generator.normal(0, 0.1))
        yield from curve(where, "accuracy", 0.7, accuracy, 2, generator.normal(0, 0.01))


def moving_validation() -> Iterator[Row]:
    generator = np.random.default_rng(4)
    for where in grid(seed=range(SEEDS), start=("cold",), arm=MOVING):
        nelbo, located, per_step = MOVING[where["arm"]]
        yield from curve(where, "nelbo", 240.0, nelbo, per_step, generator.normal(0, 0.5))
        yield from curve(where, "located", 0.06, located, per_step, generator.normal(0, 0.01))
        yield from curve(where, "constant_guess", 0.07, 0.07, per_step, 0.0)


def moving_timings() -> Iterator[Row]:
    for where in grid(seed=range(SEEDS), arm=MOVING, start=("cold",), epoch=range(3)):
        yield from long(where, {"train": 4.0 * where["epoch"]}, "seconds")


def tables() -> dict[str, pa.Table]:
    made = (variances, toy, optimal, semi_validation, moving_validation, moving_timings)
    return declared("rao_blackwell", identities=cases(IDENTITIES), **{make.__name__: make() for make in made})
