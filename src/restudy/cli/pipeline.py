"""Commands about running: run, status, explain, estimate, restore, new, and what dvc.yaml calls."""

from __future__ import annotations

import json
import os
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
@click.option("--profile", default=None, envvar="RESTUDY_PROFILE", help="default, gpu or slurm (workflow/profiles).")
@click.argument("snakemake", nargs=-1, type=click.UNPROCESSED)
def run(
    preset: str, study: str | None, count: int | None, target: str, profile: str | None, snakemake: tuple[str, ...]
) -> None:
    """Bring a preset up to date; arguments after `--` go to Snakemake."""
    from restudy.bench.run import run as work

    if profile:
        os.environ["RESTUDY_PROFILE"] = profile
    raise SystemExit(work(preset, study, count or cores(), target, snakemake))


@click.command()
@preset_option
@study_option
@click.option("--all", "everything", is_flag=True, help="List fresh outputs as well.")
@click.option("--json", "as_json", is_flag=True)
def status(preset: str, study: str | None, everything: bool, as_json: bool) -> None:
    """Fresh or stale, and why; exit code 1 unless all is fresh."""
    from restudy.bench.kinds import elsewhere_line
    from restudy.bench.lock import live
    from restudy.bench.run import chosen
    from restudy.bench.status import lines
    from restudy.bench.status import status as states

    found = states(chosen(preset, study), preset)
    if as_json:
        click.echo(json.dumps([{"path": str(s.path), "state": s.state, "reasons": s.reasons} for s in found], indent=1))
    else:
        for line in lines(found, everything):
            click.echo(line)
        counts = Counter(s.state for s in found)
        click.echo(f"{preset}: " + (", ".join(f"{n} {word}" for word, n in sorted(counts.items())) or "nothing"))
        if kinds := elsewhere_line({s.path: s.node for s in found if s.state == "fresh"}):
            click.echo(kinds)
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
    if found["kinds"]:
        click.echo(found["kinds"])


@click.command()
@click.argument("slug")
def new(slug: str) -> None:
    """Start a study: a folder that passes the contract suite, to be filled with the paper."""
    from restudy import layout
    from restudy.bench.scaffold import new as work

    click.echo(f"{layout.relative(work(slug))}/ written; docs/add-a-study.md says what to edit")


@click.command("dvc-yaml")
@click.option("--check", is_flag=True, help="Exit 1 when a dvc.yaml differs from the studies found.")
def dvc_yaml(check: bool) -> None:
    """Write dvc.yaml and workflow/dvc/*/dvc.yaml for the studies found."""
    from restudy import layout
    from restudy.bench.dvc import pipelines
    from restudy.results.files import write_atomically

    different = 0
    for name, text in pipelines().items():
        path = layout.root() / name
        if path.is_file() and path.read_text() == text:
            continue
        different += 1
        click.echo(f"{name} {'differs' if check else 'written'}")
        if not check:
            write_atomically(path, text.encode())
    raise SystemExit(1 if check and different else 0)


@click.command()
@click.option("--keep", "keeping", is_flag=True, help="Give every output a second name first; `dvc repro` does this.")
def fingerprints(keeping: bool) -> None:
    """Write fingerprints.json, from which `dvc repro` sees what changed."""
    from restudy.bench.dvc import PRESETS, write_fingerprints
    from restudy.bench.keep import keep
    from restudy.bench.outputs import expected
    from restudy.catalog.study import slugs

    if keeping:
        count = sum(keep(expected(slugs(), preset)) for preset in PRESETS)
        click.echo(f"{count} outputs kept under work/kept while DVC runs")
    click.echo("fingerprints.json " + ("written" if write_fingerprints() else "is current"))


@click.command()
@preset_option
@study_option
@click.option("--push", is_flag=True, help="Push to DVC's remote as well.")
@click.option("--remote", default=None, help="Name of the remote; DVC's default where none is named.")
def publish(preset: str, study: str | None, push: bool, remote: str | None) -> None:
    """Verify results and hand them to DVC (`dvc commit`); exit code 1 when a study is not complete."""
    from restudy.bench.publish import publish as work
    from restudy.bench.run import chosen

    found = work(chosen(preset, study), preset, push=push, remote=remote)
    for name, reason in found.incomplete.items():
        click.echo(f"not published {name}: {reason}")
    click.echo(f"{len(found.committed)} parts committed; share them with `git add` and `git commit` of")
    click.echo("  fingerprints.json dvc.lock workflow/dvc/*/dvc.lock")
    raise SystemExit(1 if found.incomplete else 0)


@click.command("dvc-check")
@click.argument("store", type=click.Path(exists=True, file_okay=False))
@click.option("--remove", is_flag=True, help="Remove them: the next `restudy publish --push` stores them anew.")
def dvc_check(store: str, remove: bool) -> None:
    """Hash every object of a DVC cache or directory remote; name the corrupted ones, exit code 1 if there are any."""
    from pathlib import Path

    from restudy.bench.objects import corrupted, names

    known, bad = names(Path(store)), 0
    for path in corrupted(Path(store)):
        bad += 1
        click.echo(f"corrupted {path}: {known.get(path.parent.name + path.name, 'of another checkout')}")
        if remove:
            path.chmod(0o644)
            path.unlink()
    click.echo(f"{bad} corrupted objects" + (" removed" if bad and remove else ""))
    raise SystemExit(1 if bad else 0)


@click.command("dvc-stage", hidden=True)
@click.argument("part")
@click.argument("preset")
@click.argument("study")
def dvc_stage(part: str, preset: str, study: str) -> None:
    """One stage of dvc.yaml."""
    from restudy.bench.dvc import run_stage

    raise SystemExit(run_stage(part, preset, study, cores()))
