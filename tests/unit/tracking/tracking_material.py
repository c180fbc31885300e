"""A made-up project with stored results: two stages, two conditions, two seeds, a figure and two verdicts."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
import sys
import zlib
from collections import Counter
from pathlib import Path

import pyarrow as pa

from restudy.claims.table import PART_SCHEMA, VERDICT_SCHEMA
from restudy.provenance.stamp import Facts, stamp_bytes, stamp_json, stamp_parquet
from restudy.results.tables import merge

SUM = hashlib.sha256(b"a data set").hexdigest()
RUN = {
    "commit": "c0ffee" * 6 + "c0ff",
    "cpu": "A made-up CPU",
    "cpu_seconds": 1.5,
    "dirty": False,
    "finished": "2026-01-02T03:04:05+00:00",
    "peak_mb": 321.0,
    "wall_seconds": 2.0,
}
STUDY = """
title: A made-up study
citation: {authors: A. Nobody, title: On nothing, venue: Nowhere, year: 2020}
summary: made up
stages:
  train: {data: [made_up], shards: [model, seeds], tables: {training: [seed, epoch, value]}}
  measure: {needs: [train], shards: [model], tables: {maps: [seed, value], histograms: [seed, value]}}
axes:
  model: {values: [cnn, mlp], default: [cnn, mlp]}
parameters:
  train: {epochs: {type: integer, default: 3, says: passes}}
presets:
  smoke: {seeds: 2, budget_core_minutes: 0.1}
  laptop: {seeds: 2, budget_core_minutes: 0.1}
  workstation: {seeds: 2, budget_core_minutes: 0.1}
  paper: {seeds: 2, budget_core_minutes: 0.1}
"""
MODELS, SEEDS, EPOCHS = ("cnn", "mlp"), (0, 1), 3
RUNS = 1 + len(MODELS) * len(SEEDS) * 2  # the parent, and a child per stage, model and seed


def write_study(root: Path, slug: str = "made_up") -> None:
    folder = root / "studies" / slug
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.yaml").write_text(STUDY)


def write_results(root: Path, slug: str = "made_up", preset: str = "smoke", source: str = "one") -> None:
    """Results as the pipeline leaves them; another `source` means another fingerprint everywhere."""
    project = _Project(root, slug, preset, source)
    trained = {
        (m, s): project.stage("train", f"{m}.s{s}", {"model": m, "seeds": [s]}, {"training": _training(m, s)})
        for m in MODELS
        for s in SEEDS
    }
    measured = {}
    for m in MODELS:
        upstream = {f"stage/train/{m}.s{s}": trained[m, s] for s in SEEDS}
        tables = {"maps": _maps(m), "histograms": _histograms(m)}
        measured[m] = project.stage("measure", m, {"model": m, "seeds": list(SEEDS)}, tables, upstream)
    above = {f"stage/train/{m}.s{s}": fp for (m, s), fp in trained.items()}
    tables = {"training": project.table("training", [_training(m, s) for m in MODELS for s in SEEDS], above)}
    above = {f"stage/measure/{m}": fp for m, fp in measured.items()}
    tables["maps"] = project.table("maps", [_maps(m) for m in MODELS], above)
    tables["histograms"] = project.table("histograms", [_histograms(m) for m in MODELS], above)
    verdicts = project.verdicts({f"table/{name}": fp for name, fp in tables.items()})
    project.figure("F1_maps", {"table/maps": tables["maps"]})
    project.figure("forest", {"verdicts": verdicts})


class _Project:
    def __init__(self, root: Path, slug: str, preset: str, source: str) -> None:
        self.root, self.slug, self.preset, self.source = root, slug, preset, source
        self.results = root / "results" / preset / slug

    def facts(self, kind: str, name: str, shard: str = "", parameters: object = None, upstream: object = None) -> Facts:
        ingredients = {
            "code": {},
            "parameters": parameters or {},
            "data": {"made_up": SUM} if name == "train" else {},
            "environment": {"python": "3.11"},
            "upstream": upstream or {},
        }
        text = json.dumps([self.source, self.slug, self.preset, kind, name, shard, ingredients], sort_keys=True)
        fingerprint = hashlib.sha256(text.encode()).hexdigest()
        return Facts(self.slug, self.preset, kind, name, shard, fingerprint, ingredients)

    def put(self, path: Path, content: bytes, facts: Facts) -> str:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        run = path.with_suffix(".run.json")
        run.write_text(json.dumps(RUN | {"fingerprint": facts.fingerprint}))
        return facts.fingerprint

    def stage(self, name: str, shard: str, parameters: dict, tables: dict, upstream: object = None) -> str:
        values = {"function": f"{name}.{name}", "device": "cpu", "epochs": EPOCHS, **parameters}
        facts = self.facts("stage", name, shard, values, upstream)
        for table, content in tables.items():
            path = self.results / "shards" / name / shard / f"{table}.parquet"
            self.put(path, stamp_parquet(content, facts), facts)
        return facts.fingerprint

    def table(self, name: str, parts: list, upstream: object) -> str:
        facts = self.facts("table", name, upstream=upstream)
        return self.put(self.results / f"{name}.parquet", stamp_parquet(merge(parts), facts), facts)

    def verdicts(self, upstream: object) -> str:
        facts = self.facts(
            "verdicts", "", parameters={"judged_as": self.preset, "seeds": len(SEEDS)}, upstream=upstream
        )
        rows = [_verdict(self.slug, "A1", "reproduced", 0.5), _verdict(self.slug, "A2", "not testable", None)]
        table = pa.Table.from_pylist(rows, schema=VERDICT_SCHEMA)
        self.put(self.results / "verdicts.parquet", stamp_parquet(table, facts), facts)
        parts = pa.Table.from_pylist([], schema=PART_SCHEMA)
        self.put(self.results / "verdict_parts.parquet", stamp_parquet(parts, facts), facts)
        path = self.root / "results" / self.preset / f"{self.slug}.verdicts.json"
        return self.put(path, stamp_json({"paper": "partially", "counts": "1 of 2", "claims": {}}, facts), facts)

    def figure(self, name: str, upstream: object) -> None:
        facts = self.facts("figure", name, upstream=upstream)
        folder = self.root / "figures" / self.preset / self.slug
        for suffix, payload in ((".png", _png()), (".svg", b'<svg xmlns="http://www.w3.org/2000/svg"></svg>')):
            self.put(folder / f"{name}{suffix}", stamp_bytes(payload, suffix, facts), facts)


def _training(model: str, seed: int) -> pa.Table:
    rows = [
        {"model": model, "seed": seed, "epoch": e, "metric": m, "value": v / (e + 1) + seed, "unit": u}
        for e in range(EPOCHS)
        for m, v, u in (("loss_nats", 2.0, "nats"), ("accuracy", 0.9, ""))
    ]
    return pa.Table.from_pylist(rows)


def _maps(model: str) -> pa.Table:
    rows = [
        {"model": model, "seed": s, "method": method, "image": i, "metric": "rank", "value": s + i / 10, "unit": ""}
        for s in SEEDS
        for method in ("gradient", "guided_backprop")
        for i in range(5)
    ]
    return pa.Table.from_pylist(rows)


def _histograms(model: str) -> pa.Table:
    return pa.table({"model": [model], "seed": [0], "counts": [[1, 2, 3]]})


def _verdict(slug: str, claim: str, verdict: str, estimate: float | None) -> dict:
    empty = dict.fromkeys(VERDICT_SCHEMA.names)
    filled = {"study": slug, "claim": claim, "kind": "direction", "primary": True, "verdict": verdict, "flags": []}
    return empty | filled | {"estimate": estimate, "ci_low": estimate, "n": 2, "reason": "because <b>|</b>"}


def _png() -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")


def command(*arguments: str) -> list[str]:
    """`python -c` with the made-up studies folder in place."""
    code = (
        "import os, sys; from pathlib import Path; from restudy import layout; "
        "layout.STUDIES = Path(os.environ['RESTUDY_ROOT']) / 'studies'; "
        "from restudy.tracking.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    return [sys.executable, "-c", code, *arguments]


def environment(root: Path, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MLFLOW_")}
    return kept | {"RESTUDY_ROOT": str(root), "MLFLOW_DISABLE_TELEMETRY": "true"} | more


def rows(root: Path, table: str) -> int:
    with sqlite3.connect(root / "mlflow.db") as base:
        return base.execute(f"select count(*) from {table}").fetchone()[0]


def counted(runs: list) -> Counter:
    """How often each key stands among runs."""
    return Counter(run.data.tags["restudy.key"] for run in runs)
