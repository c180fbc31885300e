"""The verdicts that README shows: docs/verdicts/<preset>.json from stored results, and the tables made from it."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.bench.facts import commit, run_facts
from restudy.bench.judging import claims_of
from restudy.bench.kinds import kernels_of_study
from restudy.bench.outputs import outputs
from restudy.bench.verdicts import judged_again
from restudy.catalog.plan import plan
from restudy.errors import ResultError
from restudy.provenance.environment import cpu_model
from restudy.provenance.fingerprint import Node, fingerprint
from restudy.provenance.stamp import verify
from restudy.report.load_provenance import costs, run_files
from restudy.report.words import minutes
from restudy.results.files import write_atomically

BEGIN, END = "<!-- verdicts: written by `restudy showcase` -->", "<!-- end of verdicts -->"


def json_path(preset: str) -> Path:
    """The committed file of a preset's verdicts."""
    return layout.root() / "docs" / "verdicts" / f"{preset}.json"


def record(slugs: Sequence[str], preset: str) -> dict[str, Any]:
    """Add the stored results of some studies, and a picture of each, and write README's tables anew.

    Raises:
        ResultError: a study's verdicts are missing or stale.
    """
    path = json_path(preset)
    content: dict[str, Any] = {"preset": preset, "studies": {}}
    if path.is_file():
        content = json.loads(path.read_text())
    for slug in slugs:
        node = Node("verdicts", preset, slug)
        if problem := verify(layout.root() / outputs(node)[0], fingerprint(node)):
            raise ResultError(problem, where=str(outputs(node)[0]), remedy=f"run `make reproduce PRESET={preset}`")
        content["studies"][slug] = _study(slug, preset)
        picture = layout.figures(preset, slug) / f"{plan(slug, preset).study.file.picture or 'forest'}.png"
        name = slug if preset == "laptop" else f"{slug}.{preset}"
        write_atomically(layout.root() / "docs" / "images" / f"{name}.png", picture.read_bytes())
    write(content)
    return content


def refresh(preset: str) -> list[str]:
    """Mark the studies whose source has moved on since, write the tables anew; the slugs marked."""
    content = json.loads(json_path(preset).read_text())
    marked = []
    for slug in stale(content):
        entry = content["studies"][slug]
        entry.setdefault("stale_since", datetime.now(UTC).date().isoformat())
        marked.append(slug)
    write(content)
    return marked


def stale(content: dict[str, Any]) -> list[str]:
    """The studies of a committed file whose source has moved on.

    Only told on the Python version that the file names: another one has other pins.
    """
    return [
        slug
        for slug, entry in content["studies"].items()
        if entry["machine"]["python"].rpartition(".")[0] == platform.python_version().rpartition(".")[0]
        and fingerprint(Node("verdicts", content["preset"], slug)) != entry["fingerprint"]
    ]


def write(content: dict[str, Any]) -> None:
    """Write the file, the page with all claims, and README's table."""
    path = json_path(content["preset"])
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    write_atomically(path, text.encode())
    content = json.loads(text)  # in the order of the file
    write_atomically(path.with_suffix(".md"), page(content).encode())
    _write_readme()


def _write_readme() -> None:
    """README's table, from the file of preset `laptop` where there is one."""
    path, readme = json_path("laptop"), layout.root() / "README.md"
    if path.is_file():
        shown = f"{BEGIN}\n{front(json.loads(path.read_text()))}\n{END}"
        whole = re.sub(f"{BEGIN}.*?{END}", lambda _: shown, readme.read_text(), flags=re.S)
        write_atomically(readme, whole.encode())


def front(content: dict[str, Any]) -> str:
    """What README shows: the table of a preset, and a line for each study that was recorded at another one."""
    lines = []
    for path in sorted(json_path(content["preset"]).parent.glob("*.json")):
        other = json.loads(path.read_text())
        if other["preset"] != content["preset"]:
            link = f"[docs/verdicts/{path.stem}.md](docs/verdicts/{path.stem}.md)"
            found = [f"`{slug}` {e['paper_verdict'] or 'none'}" for slug, e in sorted(other["studies"].items())]
            lines.append(f"Preset `{other['preset']}`: {'; '.join(found)}. All claims: {link}.")
    return "\n\n".join([table(content), *lines])


def _study(slug: str, preset: str) -> dict[str, Any]:
    judged, found = judged_again(slug, preset), plan(slug, preset)
    says = {claim.id: claim.says for claim in claims_of(slug)}
    spent = {cost.name: cost.cpu_seconds / 60 for cost in costs(run_files(slug, preset)) if cost.done}
    claims = [
        {
            **{name: getattr(v, name) for name in ("claim", "kind", "primary", "verdict", "reason", "estimate")},
            **{name: getattr(v, name) for name in ("ci_low", "ci_high", "sesoi", "n", "control_verdict")},
            "flags": list(v.flags),
            "says": says[v.claim],
        }
        for v in judged.verdicts
    ]
    facts = run_facts(outputs(Node("verdicts", preset, slug))[0])
    return {
        "title": found.study.file.title,
        "paper_verdict": judged.paper.text if judged.paper else None,
        "seeds": found.seeds,
        "fingerprint": fingerprint(Node("verdicts", preset, slug)),
        "core_minutes": {name: round(value, 4) for name, value in spent.items()},
        "machine": {"cpu": cpu_model(), "cores": os.cpu_count(), "python": platform.python_version()},
        "kernels": kernels_of_study(slug, preset),
        "date": str(facts.get("finished", ""))[:10],
        "commit": commit()["commit"],
        "claims": claims,
    }


def table(content: dict[str, Any]) -> str:
    """One row a study, in Markdown."""
    lines = ["| study | verdict | primary claims | seeds | core-minutes |", "| --- | --- | --- | --- | --- |"]
    for slug, entry in sorted(content["studies"].items()):
        primary = "<br>".join(f"{c['claim']} {_word(c)}" for c in entry["claims"] if c["primary"])
        since = f"<br>*stale since {entry['stale_since']}*" if entry.get("stale_since") else ""
        spent = minutes(sum(entry["core_minutes"].values()))
        verdict = f"{entry['paper_verdict'] or 'none'}{since}"
        lines.append(f"| `{slug}` | {verdict} | {primary} | {entry['seeds']} | {spent} |")
    machines = sorted({f"{e['machine']['cpu']}, {e['machine']['cores']} cores" for e in content["studies"].values()})
    lines += [
        "",
        f"Preset `{content['preset']}`, run on {'; '.join(machines)}. All claims, with estimates and intervals:",
    ]
    lines[-1] += f" [docs/verdicts/{content['preset']}.md](docs/verdicts/{content['preset']}.md)."
    return "\n".join(lines)


def page(content: dict[str, Any]) -> str:
    """Every claim of every study, in Markdown."""
    lines = [f"# Verdicts at preset `{content['preset']}`", "", "Written by `restudy showcase`; do not edit.", ""]
    for slug, entry in sorted(content["studies"].items()):
        lines += [f"## `{slug}`: {entry['title']}", "", f"{entry['paper_verdict'] or 'no paper verdict'}.", ""]
        if entry.get("stale_since"):
            lines += [f"*Stale since {entry['stale_since']}: the source has moved on since this run.*", ""]
        lines += ["| claim | says | verdict | estimate | interval | smallest effect | n |", "| --- " * 7 + "|"]
        for claim in entry["claims"]:
            interval = (
                f"[{_number(claim['ci_low'])}, {_number(claim['ci_high'])}]" if claim["ci_low"] is not None else ""
            )
            star = "*" if claim["primary"] else ""
            cells = [claim["claim"] + star, claim["says"], _word(claim), _number(claim["estimate"]), interval]
            cells += [_number(claim["sesoi"]), str(claim["n"] or "")]
            lines.append("| " + " | ".join(str(c).replace("|", "\\|") for c in cells) + " |")
        stages = ", ".join(f"{name} {minutes(spent)}" for name, spent in entry["core_minutes"].items())
        machine = entry["machine"]
        lines += ["", f"Seeds {entry['seeds']}; core-minutes: {stages}."]
        lines += [f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, {entry['date']}."]
        lines += [*([f"Kernels: {'; '.join(entry['kernels'])}."] if entry.get("kernels") else []), ""]
    return "\n".join(lines)


def _word(claim: dict[str, Any]) -> str:
    beside = "; ".join([*([claim["reason"]] if claim["reason"] else []), *claim["flags"]])
    return f"**{claim['verdict']}**" + (f" ({beside})" if beside else "")


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.3g}"
