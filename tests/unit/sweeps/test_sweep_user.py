"""The study on a user's function: the folder, resuming, the protocol, the edge check, one-line errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from restudy.cli.sweep import sweep
from restudy.errors import ConfigError
from restudy.methods.sweeps.protocol import run_trial
from restudy.methods.sweeps.texts import pair, whole_numbers
from restudy.methods.sweeps.user import Options, sweep_function
from restudy.results import read_table

MODULE = """
import math
from pathlib import Path

def train(*, batch_size, learning_rate, momentum, steps, seed):
    with Path("calls.txt").open("a") as file:
        file.write(f"{batch_size} {seed}\\n")
    rate = learning_rate / (1 - momentum)
    best = 0.5 * batch_size / (batch_size + 64)
    if rate > 4 * best:
        raise FloatingPointError
    speed = rate / best * math.exp(1 - rate / best) / (1 + 64 / batch_size)
    for step in range(0, steps + 1, max(steps // 400, 1)):
        yield step, math.exp(-0.05 * speed * step)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_sweep_training.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


ARGUMENTS = ["--train", "my_sweep_training:train", "--batch-sizes", "4,16,64,256,1024", "--goal", "0.1"]
ARGUMENTS += ["--trials", "16", "--steps", "4000", "--rates", "0.001,10"]


def invoke(*more: str) -> object:
    return CliRunner().invoke(sweep, [*ARGUMENTS, *more], catch_exceptions=False)


def test_command_writes_the_folder_and_finds_the_curve(here: Path) -> None:
    done = invoke("--out", "a")
    assert done.exit_code == 0 and done.stdout.strip() == "a/index.html"  # type: ignore[attr-defined]
    names = {path.name for path in (here / "a").iterdir()}
    figures = {f"{n}.{s}" for n in ("steps", "rates", "box", "budgets") for s in ("svg", "png", "pdf")}
    assert names == {"trials", "index.html", "measurements.parquet", "trials.parquet", "curve.parquet", *figures}
    curve = read_table(here / "a" / "curve.parquet").to_pandas()
    assert (curve.steps.diff().dropna() <= 0).all() and (curve.edge_position.between(0.05, 0.95)).all()
    assert (curve.effective_learning_rate.diff().dropna() >= 0).all() and (curve.feasible_share < 1).any()
    text = (here / "a" / "index.html").read_text()
    assert "http" not in text and "B_crit" in text


def test_a_second_call_trains_only_what_is_missing(here: Path) -> None:
    invoke("--out", "a")
    before = {p.name: p.read_bytes() for p in (here / "a").iterdir() if p.is_file()}
    calls = (here / "calls.txt").read_text().count("\n")
    assert calls == 5 * 16
    (here / "a" / "trials" / "b64-trial3.parquet").unlink()
    invoke("--out", "a")
    assert (here / "calls.txt").read_text().count("\n") == calls + 1
    assert {p.name: p.read_bytes() for p in (here / "a").iterdir() if p.is_file()} == before
    invoke("--out", "a", "--seed", "1")
    assert (here / "calls.txt").read_text().count("\n") == 2 * calls + 1, "other options train anew"


def test_trials_of_another_source_are_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import restudy.methods.sweeps.user as user

    source = ["one"]
    monkeypatch.setattr(user, "_source", lambda train: source[0])
    calls = []

    def train(**given: object) -> object:
        calls.append(given["batch_size"])
        yield given["steps"], 1.0

    options = Options((1, 2, 4), goal=0.5, trials=2, steps=10, least_steps=1)
    for text in ("one", "one", "two"):
        source[0] = text
        sweep_function(train, tmp_path, options, "train")  # type: ignore[arg-type]
    assert len(calls) == 2 * 3 * 2
    monkeypatch.undo()
    assert "def sweep_function" in user._source(sweep_function)  # type: ignore[arg-type]


def test_a_sweep_that_never_reaches_its_goal_still_ends(here: Path) -> None:
    done = invoke("--out", "never", "--goal", "-5", "--steps", "100")
    assert done.exit_code == 0  # type: ignore[attr-defined]
    page = (here / "never" / "index.html").read_text()
    assert "no complete trial reached the goal" in page and "No curve" in page and "nan" not in page
    assert "<code>--rates 0.001,10</code>" in page and "<code>--goal -5</code>" in page and "one_minus" not in page
    assert "nan" not in done.stderr  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--momentum", "0.9,0.5"], "--momentum 0.9,0.5"),
        (["--rates", "0.1,inf"], "--rates"),
        (["--rates", "3,1"], "--rates"),
        (["--batch-sizes", "4,8"], "--batch-sizes"),
        (["--out", "my_sweep_training.py/out"], "is a file"),
    ],
)
def test_mistakes_name_the_option_before_anything_is_trained(here: Path, arguments: list[str], word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        invoke(*arguments)
    assert word in str(caught.value) and "\n" not in str(caught.value) and not (here / "calls.txt").exists()


def test_a_seed_below_0_is_refused(here: Path) -> None:
    done = invoke("--seed", "-1")
    assert done.exit_code == 2 and "--seed" in done.stderr  # type: ignore[attr-defined]


def test_a_trial_that_never_ends_is_said(tmp_path: Path) -> None:
    def train(**_: object) -> object:
        yield 1, 1.0

    found = sweep_function(train, tmp_path, Options((1, 2, 4), goal=0.5, trials=2, steps=10))  # type: ignore[arg-type]
    assert sum("yield until step >= steps" in text for text in found.warnings) == 3


def test_the_edge_check_doubts_a_box_that_ends_too_early(here: Path) -> None:
    done = invoke("--out", "narrow", "--rates", "0.0005,0.01", "--momentum", "none", "--least-steps", "4000")
    assert "edge of the searched range" in done.stderr  # type: ignore[attr-defined]
    assert "edge of the searched range" in (here / "narrow" / "index.html").read_text()
    curve = read_table(here / "narrow" / "curve.parquet").to_pandas()
    assert curve.edge_position.max() > 0.95 and (curve.momentum == 0).all()


def run(items: object, **options: object) -> dict[str, object]:
    def train(**_: object) -> object:
        yield from items  # type: ignore[misc]

    arguments = {"batch_size": 4, "trial_id": 0, "steps": 10, **options}
    table = run_trial(train, **arguments)  # type: ignore[arg-type]
    return {"status": table["status"].to_pylist()[0], "steps": table["step"].to_pylist()}


def test_statuses() -> None:
    assert run([(1, 0.5), (10, 0.4), (11, 0.3)]) == {"status": "complete", "steps": [1, 10]}
    assert run([(1, 0.5)]) == {"status": "incomplete", "steps": [1]}
    assert run([(1, 0.5), (2, float("nan")), (10, 0.1)])["status"] == "infeasible"
    assert run([(1, 0.5, 2.0), (2, 0.5, 4.1), (10, 0.1, 0.1)]) == {"status": "infeasible", "steps": [1, 2]}
    assert run([(1, 0.5, 2.0), (2, 0.5, float("nan"))])["status"] == "infeasible"
    assert run([]) == {"status": "incomplete", "steps": [0]}

    def dies(**_: object) -> object:
        yield 1, 0.5
        raise OverflowError

    assert run_trial(dies, batch_size=4, trial_id=0, steps=10)["status"].to_pylist() == ["infeasible"]  # type: ignore[arg-type]


@pytest.mark.parametrize("items", [[1], [(1, "x")], [(2, 0.1), (2, 0.1)], [(1, 0.1, 0.2, 0.3)], ["12"], [{1: 2, 3: 4}]])
def test_items_of_another_form_are_refused_in_one_line(items: list[object]) -> None:
    with pytest.raises(ConfigError) as error:
        run(items)
    assert "\n" not in str(error.value) and "batch size 4, trial 0" in str(error.value)


def test_errors_of_the_function_name_the_trial() -> None:
    def broken(**_: object) -> object:
        raise KeyError("weights")

    with pytest.raises(ConfigError, match="returns NoneType"):
        run_trial(lambda **_: None, batch_size=4, trial_id=7, steps=10)  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match="KeyError.*"):
        run_trial(broken, batch_size=4, trial_id=7, steps=10)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"batch_sizes": (4, 8)},
        {"batch_sizes": (0, 4, 8)},
        {"goal": float("nan")},
        {"trials": 1},
        {"rates": (1.0, 0.1)},
        {"one_minus_momentum": (0.1, 1.5)},
        {"steps": 0},
    ],
)
def test_options_that_make_no_sense(change: dict[str, object], tmp_path: Path) -> None:
    options = Options(**{"batch_sizes": (4, 8, 16), "goal": 0.1, **change})  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        sweep_function(lambda **_: [], tmp_path, options)
    assert not list(tmp_path.iterdir())


def test_texts() -> None:
    assert whole_numbers("x", "16,4,4") == (4, 16) and pair("x", "0.1,2") == (0.1, 2.0)
    for wrong in (lambda: whole_numbers("x", "4,a"), lambda: pair("x", "1"), lambda: pair("x", "1,b")):
        with pytest.raises(ConfigError):
            wrong()
