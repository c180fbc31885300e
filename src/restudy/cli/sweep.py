"""`restudy sweep`: steps to a goal against the batch size, for a training function of your own."""

from __future__ import annotations

import click

from restudy.cli.own_model import SEED, typed_options


@click.command()
@click.option("--train", "train", required=True, help="module:function that trains and yields (step, value).")
@click.option("--batch-sizes", required=True, help="At least three, with commas, e.g. 16,64,256,1024.")
@click.option("--goal", required=True, type=float, help="The value to get past.")
@click.option("--better", default="lower", show_default=True, type=click.Choice(["lower", "higher"]))
@click.option("--trials", default=16, show_default=True, type=click.IntRange(2), help="Trials at every batch size.")
@click.option(
    "--steps",
    default=2000,
    show_default=True,
    type=click.IntRange(1),
    help="Steps of a trial at the smallest batch size.",
)
@click.option(
    "--least-steps",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="Steps that every batch size gets at least.",
)
@click.option("--rates", default="0.003,3", show_default=True, help="Searched effective rates eta / (1 - momentum).")
@click.option("--momentum", default="0.5,0.99", show_default=True, help="Searched momentum; `none` for plain SGD.")
@click.option("--seed", default=0, show_default=True, type=SEED)
@click.option("--out", "folder", default="sweep", show_default=True, type=click.Path(file_okay=False))
def sweep(
    train: str,
    batch_sizes: str,
    goal: float,
    better: str,
    trials: int,
    steps: int,
    least_steps: int,
    rates: str,
    momentum: str,
    seed: int,
    folder: str,
) -> None:
    """Tune learning rate and momentum at every batch size and count the steps to a goal."""
    from pathlib import Path

    from restudy.errors import ConfigError
    from restudy.methods.landscape.load import named
    from restudy.methods.sweeps.measurements import BETTER
    from restudy.methods.sweeps.texts import pair, whole_numbers
    from restudy.methods.sweeps.user import Options, sweep_function
    from restudy.own_model import check_folder

    low, high = (0.0, 0.0) if momentum == "none" else pair("--momentum", momentum)
    if momentum != "none" and not 0 <= low < high < 1:
        raise ConfigError(f"--momentum {momentum}", remedy="give low,high with 0 <= low < high < 1, or none")
    rest = None if momentum == "none" else (1 - high, 1 - low)
    sizes, past = whole_numbers("--batch-sizes", batch_sizes), BETTER[better]
    options = Options(sizes, goal, past, trials, steps, least_steps, pair("--rates", rates), rest, seed)
    options.check()
    check_folder(Path(folder))
    found = sweep_function(named(train), Path(folder), options, train, typed_options())
    for warning in found.warnings:
        click.echo(f"doubt: {warning}", err=True)
    click.echo(Path(folder) / "index.html")
