"""Deviations from exact statements, one replicate per random field or case; 0 is right. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.neural_ode.tidy import Tables, determination, replicates, series, slope, where

Statistic = Callable[[Tables], pa.Table]


def _identity(claim: str, metrics: tuple[str, ...], says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], claim=claim, metric=metrics)
        names = [f"{c}, {m}" for c, m in zip(rows["case"].to_pylist(), rows["metric"].to_pylist(), strict=True)]
        return replicates(dict(zip(names, rows["value"].to_pylist(), strict=True)))

    statistic.__doc__ = says
    return statistic


TIMES = ("dL/dt1 by differences", "dL/dt0 by differences", "dL/dt0 closed form") + (
    "dL/dt1 of the library",
    "dL/dt0 of the library",
)
time_gradient_error = _identity("D1", TIMES, "Per field: relative error of gradients with regard to both times.")
tied_value_error = _identity("O11", ("value",), "Per field and depth: Euler's values against tied blocks, relative.")
tied_gradient_error = _identity("O11", ("gradient",), "Per field and depth: the same for gradients.")
flow_trace_error = _identity("O7", ("trace integral",), "Per flow: trace integral against log |det|, nats.")
flow_mass_error = _identity("O7", ("mass",), "Per flow: distance of the density's integral from 1.")
flow_round_trip = _identity("O7", ("round trip",), "Per flow: distance of points carried back and forth.")
flow_both_ways = _identity("O7", ("both ways",), "Per flow: log density of samples, forwards against backwards.")
trace_error = _identity("O14", ("trace",), "Per flow: closed-form trace against autograd's.")
determinants_taken = _identity("O14", ("determinants",), "Per flow: determinants on the training path.")
likelihood_error = _identity("O9", ("quadrature",), "Per process: log-likelihood against quadrature, nats.")


def long_way_shortfall(tables: Tables) -> pa.Table:
    """Per flow: 1 where the count of determinants finds none on the path that takes one; checks the counter."""
    rows = where(tables["identities"], claim="O14", metric="determinants of the long way")
    found = zip(rows["case"].to_pylist(), rows["value"].to_pylist(), strict=True)
    return replicates({case: max(0.0, 1 - value) for case, value in found})


def _errors(tables: Tables, method: str) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    rows = tables["gradients"]
    problems = sorted(set(rows["problem"].to_pylist()))
    return {p: series(rows, "tolerance", "error", problem=p, method=method) for p in problems}


def adjoint_slope_shortfall(tables: Tables) -> pa.Table:
    """Per field: what the slope of log gradient error against log tolerance lacks of .7."""
    return replicates({p: max(0.0, 0.7 - slope(*xy)) for p, xy in _errors(tables, "adjoint").items()})


def finest_adjoint_error(tables: Tables) -> pa.Table:
    """Per field: relative error of the adjoint's gradient at the finest tolerance."""
    return replicates({p: float(y[0]) for p, (_, y) in _errors(tables, "adjoint").items()})


def equations_error(tables: Tables) -> pa.Table:
    """Per field: the same for the adjoint equations written out."""
    return replicates({p: float(y[0]) for p, (_, y) in _errors(tables, "equations").items()})


def fixed_step_gap_shortfall(tables: Tables) -> pa.Table:
    """Per field: what Euler's gap between adjoint and discrete gradient lacks of .01, or an order's fall of tenfold."""
    found = {}
    for problem, (_, euler) in _errors(tables, "euler").items():
        midpoint, rk4 = (float(_errors(tables, method)[problem][1][0]) for method in ("midpoint", "rk4"))
        gap = float(euler[0])
        found[problem] = max(0.0, 0.01 - gap, 10 - gap / midpoint, 10 - midpoint / rk4)
    return replicates(found)


def _bytes(tables: Tables, method: str) -> tuple[np.ndarray, np.ndarray]:
    return series(tables["memory"], "steps", "bytes", method=method)


def adjoint_bytes_growth(tables: Tables) -> pa.Table:
    """Largest over smallest number of bytes that the adjoint keeps, less 1, over all numbers of steps."""
    _, kept = _bytes(tables, "adjoint")
    return replicates({"rk4": float(kept.max() / kept.min() - 1)})


def backprop_bytes_bend(tables: Tables) -> pa.Table:
    """1 - R^2 of the line through bytes against steps, backpropagation."""
    return replicates({"rk4": 1 - determination(*_bytes(tables, "backprop"))})


def backprop_bytes_shortfall(tables: Tables) -> pa.Table:
    """What the growth of bytes, over that of steps, lacks of .9, backpropagation."""
    steps, kept = _bytes(tables, "backprop")
    return replicates({"rk4": max(0.0, 0.9 - float(kept[-1] / kept[0]) / float(steps[-1] / steps[0]))})


def euler_slope_error(tables: Tables) -> pa.Table:
    """Per field: distance from -1 of the slope of log distance against log steps, Euler's method."""
    rows = tables["refinement"]
    problems = sorted(set(rows["problem"].to_pylist()))
    return replicates({p: abs(slope(*series(rows, "steps", "distance", problem=p)) + 1) for p in problems})
