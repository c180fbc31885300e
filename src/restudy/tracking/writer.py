"""Puts a record into MLflow so that doing it again, or after being killed in the middle, changes nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from restudy.tracking.records import Record

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

KEY, CONTENT, COMPLETE = "restudy.key", "restudy.content", "restudy.complete"
SLOT, SUPERSEDED, LIVE_KEY = "restudy.slot", "restudy.superseded", "restudy.live_key"
PARENT = "mlflow.parentRunId"
ENTRIES_PER_BATCH, PARAMS_PER_BATCH, RUNS_PER_PAGE, MAX_TAG = 1000, 100, 500, 8000


@dataclass
class Counts:
    """What one ingest did to the runs."""

    created: int = 0
    finished: int = 0
    unchanged: int = 0
    superseded: int = 0


@dataclass
class Writer:
    """The runs of one study at one preset in one experiment.

    Attributes:
        client: MLflow's client.
        experiment: id of the experiment.
        after: called after every step, by tests that die there.
    """

    client: MlflowClient
    experiment: str
    study: str
    preset: str
    after: Callable[[str], None] = lambda step: None
    counts: Counts = field(default_factory=Counts)
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def load(self) -> None:
        """Look up every run of the study and preset, by key; the earliest first."""
        self.runs = {}
        for run in sorted(self._search(), key=lambda r: (r.info.start_time, r.info.run_id)):
            self.runs.setdefault(run.data.tags.get(KEY, ""), []).append(run)

    def put(self, record: Record, parent: str | None = None) -> str:
        """Make the run of a record, finish it, or leave it as it is; the run's id."""
        mine = self._usable(record)
        if mine is not None and COMPLETE in mine.data.tags:
            self.counts.unchanged += 1
            self._set_tags(mine, {SUPERSEDED: "false"} | ({PARENT: parent} if parent else {}))
            return str(mine.info.run_id)
        if mine is None:
            mine = self._create(record, parent)
            self.counts.created += 1
        else:
            self.counts.finished += 1
        self._fill(mine, record)
        self._set_tags(mine, record.tags | {SUPERSEDED: "false"} | ({PARENT: parent} if parent else {}))
        self.client.set_terminated(mine.info.run_id, "FINISHED", record.end_ms or None)
        self.after("terminated")
        self.client.set_tag(mine.info.run_id, COMPLETE, "true")
        self.after("complete")
        return str(mine.info.run_id)

    def settle(self, keys: Iterable[str]) -> None:
        """Mark what these keys replace as superseded; remove live curves and what a second clone wrote meanwhile."""
        current = set(keys)
        self.load()
        for key, runs in self.runs.items():
            complete = [run for run in runs if COMPLETE in run.data.tags]
            for run in runs:
                if LIVE_KEY in run.data.tags:
                    if run.data.tags[LIVE_KEY] in current:
                        self.client.delete_run(run.info.run_id)
                elif key in current and run in complete[1:]:
                    self._adopt(run, complete[0])
                elif key in current and complete and run not in complete:
                    # A half of another clone's: should it still be writing, it meets a conflict and looks again.
                    self.client.delete_run(run.info.run_id)
                elif key and key not in current and run.data.tags.get(SUPERSEDED) != "true":
                    self.client.set_tag(run.info.run_id, SUPERSEDED, "true")
                    self.counts.superseded += 1
                    if run not in complete:
                        self.client.set_terminated(run.info.run_id, "KILLED")

    def _adopt(self, twin: Run, kept: Run) -> None:
        for runs in self.runs.values():
            for run in runs:
                if run.data.tags.get(PARENT) == twin.info.run_id:
                    self.client.set_tag(run.info.run_id, PARENT, kept.info.run_id)
        self.client.delete_run(twin.info.run_id)

    def _usable(self, record: Record) -> Run | None:
        """The complete run of a key, else a half-ingested one of the same content; other halves are removed."""
        known = self.runs.get(record.key, [])
        complete = [run for run in known if COMPLETE in run.data.tags]
        if complete:
            return complete[0]
        same = [run for run in known if run.data.tags.get(CONTENT) == record.content]
        for run in known:
            if run not in same[:1]:
                self.client.delete_run(run.info.run_id)
        return same[0] if same else None

    def _create(self, record: Record, parent: str | None) -> Run:
        tags = {name: value[:MAX_TAG] for name, value in record.tags.items()}
        tags |= {KEY: record.key, CONTENT: record.content, SLOT: record.slot, SUPERSEDED: "false"}
        tags |= {"restudy.study": self.study, "restudy.preset": self.preset}
        tags |= {PARENT: parent} if parent else {}
        run = self.client.create_run(self.experiment, record.start_ms or None, tags, record.name)
        self.after("created")
        return run

    def _fill(self, run: Run, record: Record) -> None:
        from mlflow.entities import Dataset, DatasetInput, InputTag, Metric, Param

        run_id, at = run.info.run_id, run.info.start_time
        # Params cannot be changed in MLflow: only those not there yet are logged.
        params = [Param(k, v) for k, v in sorted(record.params.items()) if k not in run.data.params]
        # The time of every metric is the run's start: logged again it is the same row, not a second one.
        metrics = [Metric(p.name, _finite(p.value), at, p.step) for p in record.metrics]
        while params or metrics:
            some, params = params[:PARAMS_PER_BATCH], params[PARAMS_PER_BATCH:]
            room = ENTRIES_PER_BATCH - len(some)
            self.client.log_batch(run_id, metrics=metrics[:room], params=some)
            metrics = metrics[room:]
            self.after("batch")
        if record.datasets:
            tag = InputTag("mlflow.data.context", "study")
            sets = [Dataset(name, digest, "restudy", source) for name, digest, source in record.datasets]
            self.client.log_inputs(run_id, [DatasetInput(found, [tag]) for found in sets])
            self.after("inputs")
        for path, folder in record.files:
            self.client.log_artifact(run_id, str(path), folder)
            self.after("artifact")
        with tempfile.TemporaryDirectory() as folder:
            for name, text in record.texts.items():
                Path(folder, name).write_text(text, encoding="utf-8")
                self.client.log_artifact(run_id, str(Path(folder, name)))

    def _set_tags(self, run: Run, tags: dict[str, str]) -> None:
        from mlflow.entities import RunTag

        short = {name: value[:MAX_TAG] for name, value in tags.items()}
        wanted = [RunTag(k, v) for k, v in sorted(short.items()) if run.data.tags.get(k) != v]
        for start in range(0, len(wanted), PARAMS_PER_BATCH):
            self.client.log_batch(run.info.run_id, tags=wanted[start : start + PARAMS_PER_BATCH])

    def _search(self) -> Iterator[Run]:
        query, token = f"tags.`restudy.preset` = '{self.preset}'", None
        while True:
            page = self.client.search_runs([self.experiment], query, max_results=RUNS_PER_PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return


def _finite(value: float) -> float:
    """MLflow keeps NaN, and the largest double for an infinity."""
    return max(-1.7976931348623157e308, min(1.7976931348623157e308, value)) if value == value else value
