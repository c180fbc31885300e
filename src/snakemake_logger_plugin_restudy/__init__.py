"""Snakemake's progress in restudy's words: the plan, jobs done and left, ETA, verdicts, failures in a line.

Snakemake finds it by its module name (`logger: restudy` in the profile). It replaces Snakemake's default output and
must never raise.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from logging import LogRecord
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase

QUIET_RULES = {"all", "index", "report", "figures", "notebooks"}
# What Snakemake says of a failed job besides the job's own line.
SAID_ALREADY = (
    "were not present when the DAG was created",
    "CalledProcessError",
    "Exiting because a job execution failed",
    "At least one job did not complete",
)


class LogHandler(LogHandlerBase):
    """Prints one line a finished job, to stderr."""

    def __post_init__(self) -> None:
        self.started = time.monotonic()
        self.jobs: dict[int, dict[str, Any]] = {}
        self.begun: dict[int, float] = {}
        self.done = 0
        self.total = 0
        self.expected: dict[str, float] = {}

    writes_to_stream = property(lambda self: True)
    writes_to_file = property(lambda self: False)
    has_filter = property(lambda self: True)
    has_formatter = property(lambda self: True)
    needs_rulegraph = property(lambda self: False)

    def emit(self, record: LogRecord) -> None:
        """Print what a reader wants to know of a record; never raises."""
        with contextlib.suppress(Exception):
            event = getattr(record, "event", None)
            handler = getattr(self, f"on_{event}", None) if event else None
            if handler is not None:
                handler(record)
            elif event is None and "Nothing to be done" in str(record.msg):
                self.say("nothing to be done")
            elif event is None and record.levelno >= logging.WARNING:
                self.on_error(record)

    def say(self, text: str) -> None:
        """One line to stderr."""
        print(f"restudy: {text}", file=sys.stderr, flush=True)

    def on_run_info(self, record: LogRecord) -> None:
        """The plan: jobs by rule, once (a dry-run announces it twice)."""
        if self.total:
            return
        stats = {k: v for k, v in record.stats.items() if k != "total" and k not in QUIET_RULES}  # type: ignore[attr-defined]
        self.total = int(record.stats.get("total", 0))  # type: ignore[attr-defined]
        word = "would run" if self.common_settings.dryrun else "to run"
        self.say(f"{self.total} jobs {word}: " + ", ".join(f"{name} {count}" for name, count in sorted(stats.items())))

    def on_job_info(self, record: LogRecord) -> None:
        """Remember a job; on a dry-run, print it."""
        self.jobs[record.jobid] = vars(record)  # type: ignore[attr-defined]
        self.begun[record.jobid] = time.monotonic()  # type: ignore[attr-defined]
        if self.common_settings.dryrun:
            self.say(f"would run {self.name_of(vars(record))}: {getattr(record, 'reason', '')}"[:300])

    def on_job_finished(self, record: LogRecord) -> None:
        """One line: jobs done, ETA, what finished; and the verdicts where verdicts fell."""
        self.done += 1
        job_id = getattr(record, "job_id", None)
        job = self.jobs.get(job_id, {})  # type: ignore[arg-type]
        took = time.monotonic() - self.begun.get(job_id, time.monotonic())  # type: ignore[arg-type]
        if job.get("rule_name") in QUIET_RULES:
            return
        self.say(f"[{self.done}/{self.total}] {self.name_of(job)} {took:.1f} s{self.eta()}")
        if job.get("rule_name") == "verdicts_of_study":
            self.verdicts(job)

    def on_job_error(self, record: LogRecord) -> None:
        """One line: which job failed, why, and where its log is."""
        job = vars(record)
        known = self.jobs.get(job.get("jobid", -1), {})
        log = (job.get("log") or [""])[0]
        name = self.name_of(known | {"rule_name": job.get("rule_name")})
        self.say(f"FAILED {name}: {reason(log, job.get('rule_msg'))}; log {log}")

    def on_error(self, record: LogRecord) -> None:
        """An error of the workflow itself."""
        text = record.getMessage().strip()
        if text and text != "None" and not any(known in text for known in SAID_ALREADY):
            self.say(text)

    def name_of(self, job: dict[str, Any]) -> str:
        """Study, stage and shard of a job, or its rule and wildcards."""
        wildcards = dict(job.get("wildcards") or {})
        order = ("study", "stage", "shard", "table", "figure", "name")
        parts = [str(wildcards[k]) for k in order if k in wildcards]
        rule = str(job.get("rule_name", ""))
        kind = "" if "stage" in wildcards else rule.removesuffix("_of_study")
        return " ".join(p for p in (*parts[:1], kind, *parts[1:]) if p) or rule

    def eta(self) -> str:
        """The remaining time, from declared or recorded durations handed over by `restudy run`, else from the pace."""
        left = self.total - self.done
        if left <= 0:
            return ""
        spent = time.monotonic() - self.started
        whole = float(os.environ.get("RESTUDY_EXPECTED_SECONDS") or 0)
        by_pace = spent / self.done * left
        seconds = max(whole - spent, by_pace / 4) if whole else by_pace
        return f", {left} left, about {max(1, round(seconds / 60))} min" if seconds > 90 else f", {left} left"

    def verdicts(self, job: dict[str, Any]) -> None:
        """Print the verdicts that a job has just written."""
        from restudy.bench.tables import verdict_lines

        wildcards = dict(job.get("wildcards") or {})
        for line in verdict_lines(str(wildcards["study"]), str(wildcards["preset"])):
            self.say(f"  {line}")


def reason(log: str, said: str | None = None) -> str:
    """The last line that a job's log says for itself; else what the executor `said`; else that it was killed."""
    with contextlib.suppress(OSError), open(log, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        lines = [line.strip() for line in file if line.strip()]
        ours = [line for line in lines if line.startswith("restudy: ")]
        if ours:
            return ours[-1].removeprefix("restudy: ")
        if lines:
            return f"ended with {lines[-1][:200]!r}"
    if said and "SLURM" in said:
        return " ".join(said.partition("For further")[0].partition("sbatch call")[0].split())[:300]
    return "killed without a word (out of memory?)"
