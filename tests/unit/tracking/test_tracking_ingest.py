from __future__ import annotations

from pathlib import Path

import pytest

from restudy.errors import ResultError
from restudy.tracking import ingest, pending
from restudy.tracking.address import tracking_uri
from tests.unit.tracking import tracking_material as material


def all_runs(study: str = "made_up", deleted: bool = False) -> list:
    from mlflow.entities import ViewType
    from mlflow.tracking import MlflowClient

    found = MlflowClient(tracking_uri=tracking_uri())
    experiment = found.get_experiment_by_name(f"restudy/{study}")
    view = ViewType.ALL if deleted else ViewType.ACTIVE_ONLY
    return list(found.search_runs([experiment.experiment_id], run_view_type=view))


def parent_of(runs: list):
    (parent,) = [r for r in runs if "mlflow.parentRunId" not in r.data.tags]
    return parent


def test_what_an_ingest_shows(ready: Path) -> None:
    done = ingest("made_up", "smoke")
    runs = all_runs()
    assert (done.created, done.unchanged, len(runs)) == (material.RUNS, 0, material.RUNS)
    parent = parent_of(runs)
    assert parent.info.run_id == done.run_id
    assert parent.info.run_name == "made_up-smoke"
    assert parent.data.params["preset"] == "smoke"
    assert parent.data.params["train.epochs"] == "3"
    assert parent.data.tags["claim.A1"] == "reproduced"
    assert parent.data.tags["claim.A2"] == "not testable"
    assert parent.data.tags["restudy.verdict"] == "partially"
    assert parent.data.tags["mlflow.source.git.commit"] == material.RUN["commit"]
    assert parent.data.metrics["claims/estimate/A1"] == 0.5
    assert parent.data.metrics["claims/score/A1"] == 1.0
    assert "claims/score/A2" not in parent.data.metrics
    assert parent.data.metrics["verdicts/reproduced"] == 1
    assert "final/training/loss_nats/cnn" in parent.data.metrics
    assert [(d.dataset.name, d.dataset.digest) for d in parent.inputs.dataset_inputs] == [
        ("made_up", material.SUM[:36])
    ]
    (child,) = [r for r in runs if r.info.run_name == "train mlp seed 1"]
    assert child.data.tags["mlflow.parentRunId"] == done.run_id
    wanted = {"seed": "1", "model": "mlp", "epochs": "3", "preset": "smoke", "stage": "train", "condition": "mlp"}
    assert wanted.items() <= child.data.params.items()
    assert child.data.tags["restudy.cpu"] == "A made-up CPU"
    assert child.inputs.dataset_inputs
    assert (child.info.status, child.info.end_time - child.info.start_time) == ("FINISHED", 2000)
    (measured,) = [r for r in runs if r.info.run_name == "measure cnn seed 1"]
    assert measured.data.params["seed"] == "1"
    assert measured.data.metrics["maps/rank/gradient/4"] == pytest.approx(1.4)


def test_curves_and_artifacts(ready: Path) -> None:
    from mlflow.tracking import MlflowClient

    done = ingest("made_up", "smoke")
    client = MlflowClient(tracking_uri=tracking_uri())
    (child,) = [r for r in all_runs() if r.info.run_name == "train mlp seed 1"]
    curve = client.get_metric_history(child.info.run_id, "training/loss_nats")
    assert [(m.step, m.value) for m in curve] == [(e, pytest.approx(2 / (e + 1) + 1)) for e in range(3)]
    found = {a.path for folder in ("tables", "figures", "verdicts") for a in client.list_artifacts(done.run_id, folder)}
    assert found == {
        *(f"tables/{name}.parquet" for name in ("maps", "training", "histograms")),
        *(f"figures/{name}.{suffix}" for name in ("F1_maps", "forest") for suffix in ("png", "svg")),
        *(f"verdicts/{name}.parquet" for name in ("verdicts", "verdict_parts")),
    }
    assert (ready / "mlruns" / "made_up" / done.run_id / "artifacts" / "provenance.json").is_file()


def test_twice_doubles_nothing(ready: Path) -> None:
    first = ingest("made_up", "smoke")
    before = {t: material.rows(ready, t) for t in ("runs", "metrics", "params", "inputs", "datasets", "tags")}
    again = ingest("made_up", "smoke")
    assert (again.created, again.finished, again.unchanged) == (0, 0, material.RUNS)
    assert again.run_id == first.run_id
    assert {t: material.rows(ready, t) for t in before} == before


class Dies(BaseException):
    """Stands for SIGKILL: nothing of ours catches it."""


@pytest.mark.parametrize("moment", [1, 2, 5, 16, 24, 36])
def test_killed_in_the_middle_is_finished(ready: Path, moment: int) -> None:
    steps = 0

    def die(step: str) -> None:
        nonlocal steps
        steps += 1
        if steps == moment:
            raise Dies(step)

    with pytest.raises(Dies):
        ingest("made_up", "smoke", after=die)
    assert pending(["made_up"], "smoke") == ["made_up"]
    ingest("made_up", "smoke")
    assert pending(["made_up"], "smoke") == []
    runs = all_runs(deleted=True)
    assert len(runs) == material.RUNS
    assert set(material.counted(runs).values()) == {1}
    assert all(r.data.tags["restudy.complete"] == "true" and r.info.status == "FINISHED" for r in runs)
    assert material.rows(ready, "metrics") == undisturbed(runs)


def undisturbed(runs: list) -> int:
    """Rows of the metrics table after one clean ingest of the made-up results."""
    parent = len(parent_of(runs).data.metrics)
    trained = len(material.MODELS) * len(material.SEEDS) * 2 * material.EPOCHS
    return parent + trained + len(material.MODELS) * len(material.SEEDS) * 2 * 5


def test_new_fingerprint_makes_new_runs_and_supersedes(ready: Path) -> None:
    ingest("made_up", "smoke")
    material.write_results(ready, source="two")
    assert pending(["made_up"], "smoke") == ["made_up"]
    second = ingest("made_up", "smoke")
    assert (second.created, second.superseded) == (material.RUNS, material.RUNS)
    runs = all_runs()
    old = [r for r in runs if r.data.tags["restudy.superseded"] == "true"]
    assert (len(runs), len(old)) == (2 * material.RUNS, material.RUNS)
    material.write_results(ready, source="one")
    third = ingest("made_up", "smoke")
    assert (third.created, third.unchanged, third.superseded) == (0, material.RUNS, material.RUNS)
    assert len(all_runs()) == 2 * material.RUNS


def test_claims_edit_keeps_the_trainings(ready: Path) -> None:
    ingest("made_up", "smoke")
    (ready / "figures" / "smoke" / "made_up" / "forest.png").unlink()
    assert pending(["made_up"], "smoke") == ["made_up"]
    again = ingest("made_up", "smoke")
    assert (again.created, again.unchanged, again.superseded) == (1, material.RUNS - 1, 1)
    children = [r for r in all_runs() if "mlflow.parentRunId" in r.data.tags]
    assert {r.data.tags["mlflow.parentRunId"] for r in children} == {again.run_id}


def test_jobs_left_over_from_another_plan_are_no_part(ready: Path) -> None:
    shards = ready / "results" / "smoke" / "made_up" / "shards" / "train"
    (shards / "cnn.s7").mkdir()
    (shards / "cnn.s7" / "training.parquet").write_bytes((shards / "cnn.s1" / "training.parquet").read_bytes())
    assert ingest("made_up", "smoke").created == material.RUNS


def test_tampered_and_missing_results_are_refused(ready: Path) -> None:
    table = ready / "results" / "smoke" / "made_up" / "training.parquet"
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(ResultError, match="cut short"):
        ingest("made_up", "smoke")
    with pytest.raises(ResultError, match="missing"):
        ingest("made_up", "laptop")
    assert pending(["made_up"], "laptop") == []


def test_params_are_logged_once(ready: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    logged: list[tuple[str, str]] = []
    real = MlflowClient.log_batch

    def spy(self, run_id, metrics=(), params=(), tags=(), **more):
        logged.extend((run_id, p.key) for p in params)
        return real(self, run_id, metrics, params, tags, **more)

    def die(step: str) -> None:
        if step == "batch":
            raise Dies(step)

    monkeypatch.setattr(MlflowClient, "log_batch", spy)
    with pytest.raises(Dies):
        ingest("made_up", "smoke", after=die)
    ingest("made_up", "smoke")
    ingest("made_up", "smoke")
    assert len(logged) == len(set(logged))
