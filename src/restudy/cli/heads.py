"""`restudy heads`: the attention heads of a model of your own."""

from __future__ import annotations

import click

from restudy.cli.own_model import SEED, typed_options


@click.command()
@click.option(
    "--model", "model", required=True, help="module:function that returns a torch.nn.Module, or a model folder."
)
@click.option("--data", "data", required=True, help="A .npz with `targets` and inputs, or module:function.")
@click.option("--out", "folder", default="heads", show_default=True, type=click.Path(file_okay=False))
@click.option(
    "--keep", default=None, type=float, help="Heads to keep: a share below 1 or a count. Default: prune nothing."
)
@click.option(
    "--rounds",
    default=4,
    show_default=True,
    type=click.IntRange(1),
    help="Rounds of pruning; importance is measured anew in each.",
)
@click.option("--batch-size", default=32, show_default=True, type=click.IntRange(1))
@click.option("--loss", default="cross_entropy", show_default=True, type=click.Choice(["cross_entropy", "mse"]))
@click.option("--seed", default=0, show_default=True, type=SEED)
@click.option("--device", default="cpu", show_default=True, help="cpu, or cuda where there is one.")
def heads(
    model: str,
    data: str,
    folder: str,
    keep: float | None,
    rounds: int,
    batch_size: int,
    loss: str,
    seed: int,
    device: str,
) -> None:
    """Report what the attention heads of a model do and how much they matter; remove all but a given number."""
    from pathlib import Path

    from restudy.head_report import Options, inspect_heads
    from restudy.head_report.load import load_data, load_model
    from restudy.own_model import check_folder

    options = Options(batch_size=batch_size, loss=loss, keep=keep, rounds=rounds, device=device)
    options.check()
    check_folder(Path(folder))
    report = inspect_heads(load_model(model, seed), load_data(data), Path(folder), options, typed_options())
    for name, why in report.refused.items():
        click.echo(f"restudy: {name} left out: {why}", err=True)
    for what, value in report.losses.items():
        click.echo(f"loss, {what}: {value:.5g}")
    click.echo(Path(folder) / "index.html")
