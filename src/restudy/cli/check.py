"""`restudy check`: do the heatmaps of a model of your own pass the tests?"""

from __future__ import annotations

import click

from restudy.cli.own_model import SEED, typed_options


@click.command()
@click.option("--model", "model", required=True, help="module:function that returns a torch.nn.Module.")
@click.option("--images", "images", required=True, help="A folder of pictures, colour or grey.")
@click.option("--labels", default=None, help="A text of lines `name,label`; the predicted class by default.")
@click.option("--out", "folder", default="check", show_default=True, type=click.Path(file_okay=False))
@click.option("--methods", default=None, help="Heatmaps that are checked, with commas; nine by default.")
@click.option("--fills", default="uniform,mean,blur", show_default=True, help="What replaces a region; also black.")
@click.option("--size", default=None, type=click.IntRange(1), help="Side of the square inputs; 224 where sizes differ.")
@click.option("--channels", default=None, type=click.Choice(["1", "3"]), help="By default those of the first layer.")
@click.option("--mean", default="0", show_default=True, help="Inputs are (pixel - mean) / std, pixels in [0, 1].")
@click.option("--std", default="1", show_default=True, help="One number, or three with commas.")
@click.option(
    "--region", default=None, type=click.IntRange(1), help="Side of the regions in pixels; an eighth of the image's."
)
@click.option("--limit", default=32, show_default=True, type=click.IntRange(1), help="Most images that are looked at.")
@click.option(
    "--states", default=5, show_default=True, type=click.IntRange(2), help="States of each cascade of random layers."
)
@click.option("--batch-size", default=32, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True, type=SEED)
@click.option("--device", default="cpu", show_default=True, help="cpu, or cuda where there is one.")
def check(
    model: str,
    images: str,
    labels: str | None,
    folder: str,
    methods: str | None,
    fills: str,
    size: int | None,
    channels: str | None,
    mean: str,
    std: str,
    region: int | None,
    limit: int,
    states: int,
    batch_size: int,
    seed: int,
    device: str,
) -> None:
    """Check heatmaps on a model of your own: random weights, perturbed regions, complexity; say what passed."""
    from pathlib import Path

    from restudy.checkup.images import input_channels, load_images
    from restudy.checkup.judge import summary
    from restudy.checkup.run import METHODS, Options, check_model
    from restudy.methods.landscape.load import load_model
    from restudy.own_model import check_folder

    wanted = METHODS if methods is None else _names(methods)
    options = Options(methods=wanted, fills=_names(fills), region=region, states=states, seed=seed,
                      batch_size=batch_size, device=device)  # fmt: skip
    options.check()
    check_folder(Path(folder))
    net = load_model(model, seed)
    found = load_images(images, labels, channels=int(channels) if channels else input_channels(net), size=size,
                        mean=_numbers("--mean", mean), std=_numbers("--std", std), limit=limit)  # fmt: skip
    tables = check_model(net, found, Path(folder), options, typed_options())
    click.echo("\n".join(summary(tables["verdicts"])))
    click.echo(Path(folder) / "index.html")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _numbers(option: str, text: str) -> tuple[float, ...]:
    from math import isfinite

    from restudy.errors import ConfigError

    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(isfinite(number) for number in found):
        raise ConfigError(f"{option} {text!r}", remedy="give one number, or three with commas, e.g. 0.485,0.456,0.406")
    return found
