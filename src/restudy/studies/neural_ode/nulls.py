"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from restudy.studies.neural_ode.tidy import Tables, where, with_values

Null = Callable[[Tables], dict[str, pa.Table]]


def changed(name: str, change: Callable[[float], float], column: str = "value", **chosen: object) -> Null:
    """Values of some rows of a table changed."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        rows = tables[name].to_pylist()
        values = [
            change(row[column]) if all(row[key] == wanted for key, wanted in chosen.items()) else row[column]
            for row in rows
        ]
        return {**tables, name: with_values(tables[name], column, values)}

    return null


def copied(name: str, given: str, taken: str, column: str = "value", plus: float = 0.0, **chosen: object) -> Null:
    """An arm's numbers taken from another arm of the next seed, as if the arms did not differ."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        rows = tables[name].to_pylist()
        seeds = sorted({row["seed"] for row in rows})
        after = {seed: seeds[(place + 1) % len(seeds)] for place, seed in enumerate(seeds)}
        keys = [k for k in tables[name].column_names if k not in ("seed", "arm", "method", column)]
        arm = "arm" if "arm" in tables[name].column_names else "method"
        source = {
            (row["seed"], *(row[k] for k in keys)): row[column]
            for row in where(tables[name], **{arm: taken}).to_pylist()
        }
        values = []
        for row in rows:
            mine = row[arm] == given and all(row[k] == wanted for k, wanted in chosen.items())
            found = source.get((after[row["seed"]], *(row[k] for k in keys))) if mine else None
            values.append(row[column] if found is None else found + plus)
        return {**tables, name: with_values(tables[name], column, values)}

    return null


def in_turn(*nulls: Null) -> Null:
    """Several changes, one after the other."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        found = dict(tables)
        for one in nulls:
            found = one(found)
        return found

    return null


def _same_time(given: str, taken: str) -> Null:
    return copied("train_timings", given, taken, "seconds")


def _off(claim: str) -> Null:
    """Every deviation of an exact claim made larger by 1."""
    return changed("identities", lambda value: value + 1.0, claim=claim)


_NO_TOLERANCE = in_turn(
    changed("tolerances", lambda _: 1e-3, metric="state_error"),
    changed("tolerances", lambda _: 26.0, metric="evaluations"),
)

planted_nulls: dict[str, Null] = {
    "O1": changed("gradients", lambda value: value + 1e-3, "error"),
    "O2": changed("memory", lambda _: 1000, "bytes", method="backprop"),
    "O3": _NO_TOLERANCE,
    "E3": _NO_TOLERANCE,
    "O4": copied("training", "odenet", "resnet6", plus=0.05, metric="test_error"),
    "T4": copied("training", "odenet", "tied6", metric="test_error"),
    "O5": in_turn(
        changed("training", lambda _: 26.0, arm="odenet", metric="forward_mean"),
        changed("training", lambda value: 26.0 + 0.01 * value, arm="odenet", metric="backward_mean"),
    ),
    "O6": in_turn(
        changed("training", lambda _: 26.0, arm="odenet", metric="forward_early"),
        changed("training", lambda value: 26.0 + 0.01 * value, arm="odenet", metric="forward_late"),
    ),
    "O7": in_turn(copied("densities", "nf", "cnf"), copied("densities", "nf_long", "cnf")),
    "W7": copied("densities", "nf", "cnf"),
    "I7": _off("O7"),
    "X7": changed("densities", lambda value: value + 1.0, arm="cnf", metric="jacobian_gap"),
    "O8": copied("forecasts", "rnn", "latent_ode"),
    "G8": in_turn(copied("forecasts", "rnn_gaps", "latent_ode"), copied("forecasts", "gru_gaps", "latent_ode")),
    "I8": changed("forecasts", lambda value: 5 * value, arm="latent_ode", metric="between"),
    "O9": changed("intensities", lambda value: 0.3 * value, metric="correlation"),
    "I9": _off("O9"),
    "O10": in_turn(
        copied("training", "plain12", "resnet12", metric="train_loss"),
        copied("training", "plain6", "resnet6", metric="train_loss"),
    ),
    "O11": _off("O11"),
    "O12": changed("exchanges", lambda value: value + 1.0, solver="bosh3", metric="logit_distance"),
    "V1": changed("exchanges", lambda _: 0.1, arm="odenet", solver="rk4-16", metric="accuracy"),
    "O13": in_turn(_same_time("odenet", "resnet6"), copied("curves", "odenet", "resnet6")),
    "O14": in_turn(copied("trace_timings", "determinant", "trace", "seconds"), _off("O14")),
    "I14": _off("O14"),
    "T3": changed("solver_timings", lambda value: 1 / value, "seconds"),
    "D1": _off("D1"),
    "G1": changed("gradients", lambda _: 1e-9, "error", method="euler"),
}
"""Claim -> a function from results to results without the effect."""
