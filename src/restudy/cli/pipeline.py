"""Commands about running: run, status, explain, estimate, restore, new, and what dvc.yaml calls."""

from __future__ import annotations

import json
from collections import Counter

import click

from restudy.cli.options import cores, preset_option, study_option


@click.command()
@preset_option
@study_option
@click.option(
    "--cores", "-c", "count", type=click.IntRange(1), default=None, help="Jobs at a time; all cores by default."
)
@click.option("--target", default="all", show_default=True, help="all, verdicts, figures, notebooks or report.")
@click.argument("snakemake", nargs=-1, type=click.UNPROCESSED)
def run(preset: str, study: str | None, count: int | None, target: str, snakemake: tuple[str, ...]) -> None:
    """Bring a preset up to date; arguments after `--` go to Snakemake."""
    from restudy.bench.run import run as work

    raise SystemExit(work(preset, study, count or cores(), target, snakemake))


@click.command()
@preset_option
@study_option
@click.option("--all", "everything", is_flag=True, help="List fresh outputs as well.")
@click.option("--json", "as_json", is_flag=True)
def status(preset: str, study: str | None, everything: bool, as_json: bool) -> None:
    """Fresh or stale, and why; exit code 1 unless all is fresh."""
    from restudy.bench.lock import live
    from restudy.bench.run import chosen
    from restudy.bench.status import status as states

    found = states(chosen(preset, study), preset)
    if as_json:
        click.echo(json.dumps([{"path": str(s.path), "state": s.state, "reasons": s.reasons} for s in found], indent=1))
    else:
        for state in found:
            if everything or state.state != "fresh":
                click.echo(f"{state.state:<9} {state.path}")
                for reason in state.reasons[:6]:
                    click.echo(f"          {reason}")
        counts = Counter(s.state for s in found)
        click.echo(f"{preset}: " + (", ".join(f"{n} {word}" for word, n in sorted(counts.items())) or "nothing"))
        if holder := live():
            click.echo(f"live run: {holder}")
    raise SystemExit(0 if all(s.state == "fresh" for s in found) else 1)


@click.command()
@click.argument("target")
def explain(target: str) -> None:
    """Why TARGET (an output's path) is fresh or stale: what changed, old -> new."""
    from restudy.bench.status import explain as why

    click.echo(why(target))


@click.command()
@preset_option
@study_option
@click.option("--cores", "-c", "count", type=click.IntRange(1), default=None)
def estimate(preset: str, study: str | None, count: int | None) -> None:
    """What a run will cost, in core-minutes, from recorded and declared costs."""
    from restudy.bench.estimate import estimate_all, table
    from restudy.bench.run import chosen

    click.echo(table(estimate_all(chosen(preset, study), preset), count or cores()))


@click.command()
@preset_option
@study_option
def restore(preset: str, study: str | None) -> None:
    """After `dvc pull` or a copy: verify every output, and let Snakemake trust what is current."""
    from restudy.bench.run import restore as work

    found = work(preset, study)
    for word in ("set_aside", "stale"):
        for path, reason in found[word].items():
            click.echo(f"{word.replace('_', ' ')} {path}: {reason}")
    click.echo(
        f"{found['current'] + found['recorded']} outputs are current ({found['recorded']} newly recorded), "
        f"{len(found['set_aside'])} set aside, {len(found['stale'])} stale"
    )


@click.command()
@click.argument("slug")
def new(slug: str) -> None:
    """Start a study: a folder that passes the contract suite, to be filled with the paper."""
    from restudy import layout
    from restudy.bench.scaffold import new as work

    click.echo(f"{layout.relative(work(slug))}/ written; docs/add-a-study.md says what to edit")


@click.command("dvc-yaml")
@click.option("--check", is_flag=True, help="Exit 1 when dvc.yaml differs from the studies found.")
def dvc_yaml(check: bool) -> None:
    """Write dvc.yaml for the studies found."""
    from restudy import layout
    from restudy.bench.dvc import dvc_yaml as content

    path = layout.root() / "dvc.yaml"
    if check:
        raise SystemExit(0 if path.is_file() and path.read_text() == content() else 1)
    path.write_text(content())


@click.command()
def fingerprints() -> None:
    """Write fingerprints.json, from which `dvc repro` sees what changed."""
    from restudy.bench.dvc import write_fingerprints

    click.echo("fingerprints.json " + ("written" if write_fingerprints() else "is current"))


@click.command("dvc-stage", hidden=True)
@click.argument("part")
@click.argument("preset")
@click.argument("study")
def dvc_stage(part: str, preset: str, study: str) -> None:
    """One stage of dvc.yaml."""
    from restudy.bench.dvc import run_stage

    raise SystemExit(run_stage(part, preset, study, cores()))
