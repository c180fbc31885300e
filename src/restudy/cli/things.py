"""Commands about data, comparisons and tracking."""

from __future__ import annotations

import click

from restudy.cli.options import preset_option


@click.group(invoke_without_command=True)
@click.pass_context
def data(context: click.Context) -> None:
    """Data sets: without a subcommand, list them with state, size and licence."""
    if context.invoked_subcommand is None:
        from restudy.data.catalogue import rows

        found = rows()
        width = max(len(str(row["licence"])) for row in found)
        for row in found:
            name, size = f"{row['name']:<18}{row['state']:<10}", f"{row['size']:>14,} bytes"
            click.echo(f"{name}{size}  {row['licence']:<{width}}  {row['source']}")


@data.command()
@click.argument("names", nargs=-1)
@click.option("--from", "path", default=None, type=click.Path(), help="A file or folder of your own (one NAME).")
def fetch(names: tuple[str, ...], path: str | None) -> None:
    """Fetch data sets (all by default) and verify their sums."""
    from restudy.data import catalogue as sets

    if path and len(names) != 1:
        raise click.UsageError("--from goes with exactly one NAME")
    for name in names or sorted(sets.discover()):
        click.echo(f"{name}: {sets.fetch(name, source=f'file:{path}' if path else None)}")


@data.command()
@click.argument("names", nargs=-1)
def check(names: tuple[str, ...]) -> None:
    """Verify the sums of fetched data again."""
    from restudy.data import catalogue as sets

    bad = 0
    for name in names or sorted(sets.discover()):
        problems = sets.check(name)
        bad += bool(problems)
        click.echo(f"{name}: {'; '.join(problems) or 'as declared'}")
    raise SystemExit(1 if bad else 0)


@click.command()
@click.argument("first")
@click.argument("second")
@click.option("--json", "as_json", is_flag=True)
@click.option("--html", type=click.Path(dir_okay=False), default=None, help="Write a page as well.")
def diff(first: str, second: str, as_json: bool, html: str | None) -> None:
    """Two runs side by side (presets or result folders): which verdicts changed, which estimates moved."""
    from pathlib import Path

    from restudy.report.diff import compare

    found = compare(first, second)
    if html:
        Path(html).write_bytes(found.html())
    click.echo(found.json_text() if as_json else found.text())


@click.command()
@preset_option
@click.argument("study")
def track(study: str, preset: str) -> None:
    """Ingest a study's results into MLflow (idempotent)."""
    from restudy.tracking.ingesting import ingest

    click.echo(ingest(study, preset))


@click.command()
def ui() -> None:
    """Open MLflow's pages of all runs (a server on loopback, until Ctrl-C)."""
    import os

    from restudy.tracking.ui import command

    arguments = command()
    os.execvp(arguments[0], arguments)


@click.command()
@preset_option
@click.argument("destination", type=click.Path())
def bundle(preset: str, destination: str) -> None:
    """Copy a preset's site with its figures into a folder or .zip that stands alone."""
    from pathlib import Path

    from restudy.report.bundle import bundle as work

    click.echo(work(preset, Path(destination)))
