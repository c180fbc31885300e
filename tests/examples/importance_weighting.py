"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, cases, declared, grid, long

SEEDS = 6
LATENT = 50
IDENTITIES = {
    "W1": ("above log p", "gap not smaller"),
    "W8": ("value", "gradient", "analytic divergence"),
    "W9": ("weighted sum", "library", "finite differences", "no encoder gradient", "attached weights"),
}
# arm -> NLL of test images, of training images, active units (plus 0 or 1)
ARMS = {
    "vae_k1": (250.0, 245.0, 19),
    "iwae_k5": (249.0, 244.5, 22),
    "iwae_k20": (248.2, 244.0, 25),
    "vae_k20": (249.8, 245.0, 19),
    "vae_k1_fixed": (252.5, 244.0, 20),
    "iwae_k20_fixed": (251.5, 243.0, 26),
    "vae_k1_two_layers": (249.0, 244.0, 18),
    "iwae_k20_two_layers": (247.0, 243.0, 24),
    "vae_k1_n1000": (270.0, 240.0, 19),
    "vae_k1_fixed_n1000": (273.0, 230.0, 19),
    "vae_k1_then_vae_k1": (249.5, 245.0, 18),
    "vae_k1_then_iwae_k20": (248.6, 245.0, 22),
    "iwae_k20_then_iwae_k20": (247.9, 245.0, 25),
    "iwae_k20_then_vae_k1": (249.2, 245.0, 21),
}
SLOPES = {("iwae", "encoder"): -0.5, ("iwae", "decoder"): 0.5, ("stl", "encoder"): 0.5, ("dreg", "encoder"): 0.4}
SPARED = {("W3", "likelihood"): "read for the names of the arms only"}


def gradient_numbers(objective: str, slope: float, k: int, noise: float) -> dict[str, float]:
    found = {"signal_to_noise": 0.2 * k ** (slope + noise), "squared_norm": 1.0 / k, "total_variance": 2.0}
    if objective != "iwae":
        found |= {"distance": 1.1 + noise if objective == "dreg" or k == 1 else 60.0 + noise, "distance_error": 1.0}
    return found


def toy_gradients() -> Iterator[Row]:
    generator = np.random.default_rng(0)
    for where in grid(seed=range(SEEDS), objective=("iwae", "stl", "dreg")):
        slope, noise = SLOPES[where["objective"], "encoder"], generator.normal(0, 0.02)
        for k in (1, 3, 10, 30):
            yield from long(where | {"k": k}, gradient_numbers(where["objective"], slope, k, noise))


def signal() -> Iterator[Row]:
    generator = np.random.default_rng(1)
    for where in grid(seed=range(SEEDS), objective=("iwae", "stl", "dreg"), parameters=("encoder", "decoder")):
        slope = SLOPES.get((where["objective"], where["parameters"]), 0.5)
        noise = generator.normal(0, 0.02)
        for k in (1, 4, 16):
            place = where | {"arm": "vae_k1", "k": k, "draws": 10}
            yield from long(place, gradient_numbers(where["objective"], slope, k, noise))


def likelihood() -> Iterator[Row]:
    generator = np.random.default_rng(2)
    for seed in range(SEEDS):
        data = generator.normal(0, 3)  # images differ by seed, and are shared by its arms
        for arm, levels in ARMS.items():
            noise = data + generator.normal(0, 0.1)
            for part, nll in zip(("test", "train"), levels[:2], strict=True):
                found = {"nll": nll + noise + generator.normal(0, 0.05), "standard_error": 0.02, "bias": 0.1}
                where = {"seed": seed, "arm": arm, "part": part, "samples": 500}
                yield from long(where, found | {"effective_samples": 10.0}, "nats")


def bounds() -> Iterator[Row]:
    generator = np.random.default_rng(3)
    for seed in range(SEEDS):
        data = generator.normal(0, 3)
        for where in grid(arm=("vae_k1", "iwae_k20"), k=(1, 5, 50, 500)):
            value = -250 - 3 / where["k"] ** 0.5 + data + generator.normal(0, 0.01)
            found = {"bound": value, "error_over_images": 4.0 + generator.normal(0, 0.5)}
            yield from long({"seed": seed} | where, found, "nats")


def units() -> Iterator[Row]:
    generator = np.random.default_rng(4)
    for where in grid(seed=range(SEEDS), arm=ARMS, layer=(1,)):
        count = ARMS[where["arm"]][2] + int(generator.integers(0, 2))
        for i in range(LATENT):
            yield from long(where | {"unit_index": i}, {"variance": 1.0 if i < count else 1e-4})


def training() -> Iterator[Row]:
    for where in grid(seed=range(SEEDS), arm=ARMS):
        test, _, active = ARMS[where["arm"]]
        start = 1000 if "_then_" in where["arm"] else 0
        for step, share in ((0, 0.0), (500, 0.9), (750, 1.0), (1000, 1.0)):
            found = {"test_bound": -400 + share * (400 - test)}
            found["active_units_1"] = round(LATENT + share * (active - LATENT))
            yield from long(where | {"step": start + step}, found)


def tables() -> dict[str, pa.Table]:
    made = {make.__name__: make() for make in (toy_gradients, signal, likelihood, bounds, units, training)}
    return declared("importance_weighting", identities=cases(IDENTITIES), **made)
