"""`restudy ...`: thin commands over the modules that do the work."""

from __future__ import annotations

import os
import sys

import click

from restudy.cli.check import check
from restudy.cli.claims import claims, extend, power, showcase, verdicts
from restudy.cli.heads import heads
from restudy.cli.landscape import landscape
from restudy.cli.pipeline import (
    dvc_check,
    dvc_stage,
    dvc_yaml,
    estimate,
    explain,
    fingerprints,
    new,
    publish,
    restore,
    run,
    status,
)
from restudy.cli.sweep import sweep
from restudy.cli.things import bundle, data, diff, track, ui
from restudy.errors import RestudyError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="restudy")
def cli() -> None:
    """Re-run the experiments of machine-learning papers and judge their claims."""


for command in (run, status, explain, estimate, restore, publish, new, verdicts, claims, extend, power):
    cli.add_command(command)
for command in (data, diff, bundle, track, ui, landscape, check, sweep, heads):
    cli.add_command(command)
for command in (fingerprints, showcase, dvc_yaml, dvc_check, dvc_stage):
    cli.add_command(command)


def main() -> None:
    """Entry point: user errors are one line and exit code 1."""
    try:
        code = cli.main(standalone_mode=False)
    except SystemExit as end:
        code = end.code
    except RestudyError as error:
        click.echo(f"restudy: {error}", err=True)
        code = 1
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("restudy: interrupted", err=True)
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.stdout.flush()
    sys.stderr.flush()
    # Arrow's threads can abort an interpreter that ends in the usual way ("terminate called without an active
    # exception", seen on a starved machine); nothing is left to clean up here.
    os._exit(code if isinstance(code, int) else 0)
