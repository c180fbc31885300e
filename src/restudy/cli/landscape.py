"""`restudy landscape`: the probes of the loss on a model of your own."""

from __future__ import annotations

import click

from restudy.cli.own_model import SEED, typed_options


@click.command()
@click.option("--model", "model", required=True, help="module:function that returns a torch.nn.Module.")
@click.option("--data", "data", required=True, help="A .npz with `inputs` and `targets`, or module:function.")
@click.option("--out", "folder", default="landscape", show_default=True, type=click.Path(file_okay=False))
@click.option("--rate", default=0.1, show_default=True, help="Learning rate of plain SGD.")
@click.option("--steps", default="0,50,100,200", show_default=True, help="Steps before which to look.")
@click.option("--batch-size", default=128, show_default=True, type=click.IntRange(2))
@click.option("--loss", default="cross_entropy", show_default=True, type=click.Choice(["cross_entropy", "mse"]))
@click.option("--layers", default="", help="Modules whose covariate shift is measured, with commas; three by default.")
@click.option("--seed", default=0, show_default=True, type=SEED)
@click.option("--device", default="cpu", show_default=True, help="cpu, or cuda where there is one.")
def landscape(
    model: str,
    data: str,
    folder: str,
    rate: float,
    steps: str,
    batch_size: int,
    loss: str,
    layers: str,
    seed: int,
    device: str,
) -> None:
    """Train a model of your own and look at its loss on the way: smoothness along the gradient, covariate shift."""
    from pathlib import Path

    from restudy.methods.landscape.inspect import Options, inspect_model
    from restudy.methods.landscape.load import load_data, load_model, numbers
    from restudy.own_model import check_folder

    measured = tuple(name.strip() for name in layers.split(",") if name.strip())
    options = Options(rate=rate, steps=numbers(steps), batch_size=batch_size, loss=loss, measured=measured,
                      seed=seed, device=device)  # fmt: skip
    options.check()
    check_folder(Path(folder))
    inspect_model(load_model(model, seed), *load_data(data), Path(folder), options, typed_options())
    click.echo(Path(folder) / "index.html")
