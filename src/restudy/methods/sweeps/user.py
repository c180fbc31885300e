"""The study on a training function of a user's own: search, edge check, fit, figures and a page in one folder."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from restudy.errors import ConfigError
from restudy.methods.sweeps.drawing import box_figure, budgets_figure, rates_figure, steps_figure
from restudy.methods.sweeps.fit import Interval, bootstrap_scaling
from restudy.methods.sweeps.measurements import COMPLETE, INFEASIBLE, Better, best_errors, fewest_steps, first_steps
from restudy.methods.sweeps.page import page
from restudy.methods.sweeps.protocol import Train, run_trial
from restudy.methods.sweeps.search import Range, sobol
from restudy.methods.sweeps.validity import edge_of, feasible_shares, outer_advantage
from restudy.own_model import as_typed, check_folder
from restudy.plotting.save import figure_bytes
from restudy.results import read_table, table_bytes, write_atomically

LEAST_FEASIBLE = 0.3
MAY_BEAT = 0.9
LATEST = 0.7


@dataclass(frozen=True)
class Options:
    """What is swept.

    Attributes:
        batch_sizes: at least three. goal: of the yielded value, strictly to be passed. better: `lower` or `higher`.
        trials: Sobol points, the same at every batch size. steps: budget at the smallest batch size; larger ones get
            as many examples, but at least `least_steps`. rates: searched effective learning rates eta / (1 - m).
            one_minus_momentum: searched range of 1 - m; None leaves the momentum at 0. seed: of search and trials.
    """

    batch_sizes: tuple[int, ...]
    goal: float
    better: Better = "lower"
    trials: int = 16
    steps: int = 2000
    least_steps: int = 200
    rates: tuple[float, float] = (0.003, 3.0)
    one_minus_momentum: tuple[float, float] | None = (0.01, 0.5)
    seed: int = 0

    def check(self) -> None:
        """Raise ConfigError, in one line, for what makes no sense."""
        sizes = sorted(set(self.batch_sizes))
        checks = [
            (
                len(sizes) >= 3 and sizes[0] >= 1,
                "--batch-sizes",
                as_typed({"": self.batch_sizes})[""] if self.batch_sizes else "none",
                "at least three, from 1 on",
            ),
            (math.isfinite(self.goal), "--goal", self.goal, "a number"),
            (self.better in ("lower", "higher"), "--better", self.better, "lower, higher"),
            (self.trials >= 2, "--trials", self.trials, "at least 2"),
            (self.steps >= 1, "--steps", self.steps, "at least 1"),
            (self.least_steps >= 1, "--least-steps", self.least_steps, "at least 1"),
            (self.seed >= 0, "--seed", self.seed, "from 0 on"),
        ]
        for fine, name, value, allowed in checks:
            if not fine:
                raise ConfigError(f"{name} is {value}", where="sweep", remedy=f"allowed: {allowed}")
        for name, one in zip(("--rates", "1 - momentum (--momentum)"), self.box().values(), strict=False):
            one.check(name)
        if self.one_minus_momentum and self.one_minus_momentum[1] > 1:
            raise ConfigError("1 - momentum above 1", where="sweep", remedy="search within (0, 1]")

    def box(self) -> dict[str, Range]:
        """The searched ranges by name."""
        box = {"effective_learning_rate": Range(*self.rates)}
        return box | ({"one_minus_momentum": Range(*self.one_minus_momentum)} if self.one_minus_momentum else {})

    def budget(self, batch_size: int) -> int:
        """Steps of every trial of a batch size."""
        return max(self.steps * min(self.batch_sizes) // batch_size, self.least_steps)


@dataclass
class Found:
    """The tables of a sweep, the fit with its interval, and what makes them hard to believe, one sentence each."""

    measurements: pa.Table
    trials: pa.Table
    curve: pa.Table
    fit: Interval
    warnings: list[str] = field(default_factory=list)


def sweep_function(
    train: Train, folder: Path, options: Options, name: str = "", shown: Mapping[str, str] | None = None
) -> Found:
    """Sweep a training function over batch sizes; write tables, figures and a page into a folder.

    Args:
        train: see `restudy.methods.sweeps.protocol.run_trial`. folder: gets measurements.parquet, trials.parquet,
            curve.parquet, four figures as .svg, .png and .pdf, index.html, and trials/ with one file for each finished
            trial: a second call with the same options, function name and source of the function's module trains only
            what is missing. What that module imports is not looked at.
        name: of the function, for the page and for telling whose trials lie in the folder.
        shown: the options as the page lists them.

    Raises:
        ConfigError: options that make no sense, a function that does not keep to the protocol.
    """
    options.check()
    check_folder(folder)
    sizes = sorted(set(options.batch_sizes))
    drawn = _draw(options)
    tables = []
    for size in sizes:
        for trial in drawn:
            tables.append(_kept_trial(train, folder / "trials", options, name, size, trial))
    measurements = pa.concat_tables(tables)
    found = analyse(measurements, drawn, options)
    _write(found, folder, options, name, shown or as_typed(asdict(options)))
    return found


def _draw(options: Options) -> list[dict[str, Any]]:
    points = sobol(options.box(), options.trials, options.seed)
    found = []
    for i in range(options.trials):
        effective = float(points["effective_learning_rate"][i])
        rest = float(points["one_minus_momentum"][i]) if "one_minus_momentum" in points else 1.0
        rates = {"learning_rate": effective * rest, "momentum": 1.0 - rest, "effective_learning_rate": effective}
        found.append({"trial_id": i, **rates})
    return found


def _kept_trial(
    train: Train, folder: Path, options: Options, name: str, size: int, trial: Mapping[str, Any]
) -> pa.Table:
    """A trial's table from its file, or trained and filed; a file of other options is replaced."""
    arguments = {"batch_size": size, "trial_id": trial["trial_id"], "steps": options.budget(size)}
    arguments |= {"learning_rate": trial["learning_rate"], "momentum": trial["momentum"]}
    arguments |= {"seed": options.seed * 1_000_003 + int(trial["trial_id"])}
    key = hashlib.sha256(repr((name, _source(train), sorted(arguments.items()))).encode()).hexdigest()
    path = folder / f"b{size}-trial{trial['trial_id']}.parquet"
    if path.is_file() and (pq.read_schema(path).metadata or {}).get(b"restudy") == key.encode():
        return read_table(path).replace_schema_metadata(None)
    table = run_trial(train, **arguments)
    write_atomically(path, table_bytes(table, key.encode()))
    return table


def _source(train: Train) -> str:
    """The text of the module that defines a function, or empty where there is none."""
    try:
        return inspect.getsource(inspect.getmodule(train) or train)
    except (OSError, TypeError):
        return ""


def analyse(measurements: pa.Table, drawn: list[dict[str, Any]], options: Options) -> Found:
    """Steps to the goal, rates, edge check and fit of a table of measurements (column `value`)."""
    steps = first_steps(measurements, options.goal, metric="value", better=options.better)
    rates = {t["trial_id"]: t for t in drawn}
    ids = steps["trial_id"].to_pylist()
    trials = steps
    for column in ("learning_rate", "momentum", "effective_learning_rate"):
        trials = trials.append_column(column, pa.array([rates[i][column] for i in ids], pa.float64()))
    budgets = [options.budget(b) for b in steps["batch_size"].to_pylist()]
    trials = trials.append_column("step_budget", pa.array(budgets, pa.int64()))
    best = {
        row["batch_size"]: row for row in best_errors(measurements, metric="value", better=options.better).to_pylist()
    }
    shares, rows, warnings = feasible_shares(steps), [], []
    for row in fewest_steps(steps).to_pylist():
        size = row["batch_size"]
        own = trials.filter(pa.array(steps["batch_size"].to_numpy() == size))
        position, found = _validity(own, options)
        chosen = rates.get(row["trial_id"], {})
        named = {k: chosen.get(k, math.nan) for k in ("learning_rate", "momentum", "effective_learning_rate")}
        share = row["steps"] / options.budget(size)
        rows.append({**row, **named, "step_budget": options.budget(size), "feasible_share": shares[size]}
                    | {"edge_position": position, "best_value": best.get(size, {}).get("value", math.nan)})  # fmt: skip
        if math.isnan(share):
            warnings.append(f"Batch size {size}: no complete trial reached the goal.")
        elif share > LATEST:
            warnings.append(f"Batch size {size}: the goal came after {share:.0%} of the budget; raise the steps.")
        if math.isnan(shares[size]):
            warnings.append(f"Batch size {size}: no trial came to its last step; yield until step >= steps.")
        elif shares[size] < LEAST_FEASIBLE:
            warnings.append(f"Batch size {size}: {shares[size]:.0%} of the trials are feasible; move the box down.")
        warnings += [f"Batch size {size}: {text}" for text in found]
    return Found(
        measurements, trials, pa.Table.from_pylist(rows), bootstrap_scaling(steps, seed=options.seed), warnings
    )


def _validity(trials: pa.Table, options: Options) -> tuple[float, list[str]]:
    """Where the best rate lies in the searched range, and what is wrong with that."""
    rates, steps, momentum = (trials[n].to_numpy() for n in ("effective_learning_rate", "steps", "momentum"))
    status = np.array(trials["status"].to_pylist())
    counted = np.where(status == COMPLETE, steps, np.nan)
    edge = edge_of(rates, counted, status != INFEASIBLE, *options.rates)
    found = []
    if not edge.inside and not math.isnan(edge.position):
        found.append(
            "the best rate lies on the edge of the searched range; widen --rates before you believe a plateau."
        )
    rest = options.one_minus_momentum
    if rest and outer_advantage(1 - momentum, counted, *rest) < MAY_BEAT:
        found.append("a trial on the edge of the searched momentum is the best by more than 10%; widen its range.")
    return edge.position, found


def _write(found: Found, folder: Path, options: Options, name: str, shown: Mapping[str, str]) -> None:
    tables = {"measurements": found.measurements, "trials": found.trials, "curve": found.curve}
    for table, content in tables.items():
        write_atomically(folder / f"{table}.parquet", table_bytes(content))
    figures = {
        "steps": steps_figure(found.curve, found.trials, found.fit),
        "rates": rates_figure(found.curve),
        "box": box_figure(found.trials, options.box()),
        "budgets": budgets_figure(found.measurements, found.trials, options.better),
    }
    for figure, drawn in figures.items():
        for suffix, content in figure_bytes(drawn).items():
            write_atomically(folder / f"{figure}.{suffix}", content)
    text = page(name or "a training function", found.curve, found.fit, found.warnings, shown)
    write_atomically(folder / "index.html", text.encode())
