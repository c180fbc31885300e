"""Stage `moving_digit`: hard attention, one of many places must be picked (section 5.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.estimators.sampling import draw
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory

from .experiment import KNOWN, Estimator, Recipe, Row, builder, fit, told
from .models import AttendingVae, Canvas, Looking, digits, divergence_from_uniform, near, place

PLACE_UNITS = {"nelbo": "nats", "nelbo_argmax": "nats", "located": "1", "constant_guess": "1", "likeliest": "1"}
WITHIN = 2
DRAWS = 8


class MovingDigit:
    """The task of one seed: digits at places drawn anew for every batch; validation places are fixed."""

    def __init__(
        self, model: AttendingVae, seed: int, train: Tensor, test: Tensor, batch_size: int, known: bool
    ) -> None:
        self.model, self.seed, self.train, self.batch_size, self.known = model, seed, train, batch_size, known
        self.device = next(model.parameters()).device
        generator = torch.Generator().manual_seed(derive_seed(seed, "validation places"))
        truth = torch.randint(model.canvas.categories, (len(test),), generator=generator)
        self.truth, self.shown = truth.to(self.device), place(model.canvas, test, truth).to(self.device)

    def batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Canvases (B, side, side) and the places of their digits."""
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        order = torch.randperm(len(self.train), generator=generator).split(self.batch_size)  # type: ignore[no-untyped-call]
        for part in order[: len(self.train) // self.batch_size]:
            truth = torch.randint(self.model.canvas.categories, (len(part),), generator=generator)
            yield place(self.model.canvas, self.train[part], truth).to(self.device), truth.to(self.device)

    def loss(self, batch: tuple[Tensor, Tensor], estimator: Estimator, generator: torch.Generator) -> Tensor:
        """Negative ELBO, nats per image."""
        x, truth = batch
        noise = torch.randn(len(x), self.model.latent, generator=generator).to(self.device)
        looking = Looking(self.model, x, noise)
        if self.known:
            return looking.at(truth[None]).mean() + math.log(self.model.canvas.categories)
        log_q = self.model.log_q(x)
        return (estimator.surrogate(log_q, looking, generator) + divergence_from_uniform(log_q)).mean()

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Validation: negative ELBO over draws of the place and at the likeliest, shares found and guessed."""
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "validation"))
        noise = torch.randn(len(self.shown), self.model.latent, generator=generator).to(self.device)
        looking, log_q = Looking(self.model, self.shown, noise), self.log_q(self.shown, self.truth)
        drawn = draw(log_q, DRAWS, generator)
        best = log_q.argmax(1)
        at_best = looking.at(best[None])[0] + math.log(self.model.canvas.categories)
        guesses = torch.arange(self.model.canvas.categories, device=self.device)[:, None]
        constant = near(self.model.canvas, guesses, self.truth[None], WITHIN).float().mean(1).max()
        return {
            "nelbo": float((looking.at(drawn).mean(0) + divergence_from_uniform(log_q)).mean()),
            "nelbo_argmax": float(at_best.mean()),
            "located": float(near(self.model.canvas, best, self.truth, WITHIN).float().mean()),
            "constant_guess": float(constant),
            "likeliest": float(log_q.exp().amax(1).mean()),
        }

    def log_q(self, x: Tensor, truth: Tensor) -> Tensor:
        """log q(place|x), (B, K); all mass at the truth where the place is known."""
        if not self.known:
            return self.model.log_q(x)
        tiny = 1e-30
        sharp = torch.full((len(x), self.model.canvas.categories), math.log(tiny), device=self.device)
        return sharp.scatter(1, truth[:, None], 0.0)

    @torch.no_grad()
    def pictures(self, count: int) -> Iterator[tuple[int, str, Tensor]]:
        """Canvas, attention map and reconstruction of the first validation images: image, kind, (side, side)."""
        x, truth = self.shown[:count], self.truth[:count]
        log_q = self.log_q(x, truth)
        looking = Looking(self.model, x, torch.zeros(len(x), self.model.latent, device=self.device))
        drawn = looking.reconstruction(log_q.argmax(1))
        n = self.model.canvas.places
        for i in range(len(x)):
            yield i, "canvas", x[i].cpu()
            yield i, "attention", log_q[i].exp().view(n, n).cpu()
            yield i, "reconstruction", drawn[i].cpu()


def moving_digit(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    side: int,
    digit: int,
    train_images: int,
    validation: int,
    channels: int,
    hidden: int,
    latent: int,
    head: str,
    batch_size: int,
    epochs: int,
    learning_rates: Mapping[str, float],
    temperature: float,
    anneal_rate: float,
    lowest_temperature: float,
    examples: int,
) -> Outputs:
    """Train every arm from the same networks.

    Returns `moving_validation` (as `semi_validation`), `attention` (pictures of seed 0) and the volatile
    `moving_timings` (CPU seconds of training).
    """
    keep_freed_memory()
    canvas = Canvas(side, digit)
    train, test = (digits(canvas, n, test=held) for n, held in ((train_images, False), (validation, True)))
    rows: dict[str, list[Row]] = {"moving_validation": [], "moving_timings": []}
    pictures: list[Row] = []
    for seed in seeds:
        for arm in arms:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(derive_seed(seed, "networks"))
                model = AttendingVae(canvas, channels=channels, hidden=hidden, latent=latent, head=head)
            model = model.to(context.device)
            task = MovingDigit(model, seed, train, test, batch_size, known=arm == KNOWN)
            build = builder(arm, canvas.categories, seed)
            rates = float(learning_rates[arm]), temperature, anneal_rate, lowest_temperature
            path = context.checkpoints / f"s{seed}-{arm}.pt"
            records = fit(task, build, Recipe(arm, seed, epochs, *rates), path, context.live(seed))
            found = told(records, {"seed": seed, "arm": arm, "start": "cold"}, build(1.0).evaluations, PLACE_UNITS)
            for table, more in zip(rows.values(), found, strict=True):
                table += more
            if seed == 0:
                pictures += [
                    {"seed": seed, "arm": arm, "image": i, "kind": kind, "side": len(shown)}
                    | {"values": shown.flatten().tolist()}
                    for i, kind, shown in task.pictures(examples)
                ]
    return {**rows, "attention": pictures}
