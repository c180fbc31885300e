"""What a training step costs: all samples in one pass, against a loop over samples with textbook terms."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Normal

from restudy.methods.importance.gradients import backward
from restudy.methods.importance.models import DeepGaussianAutoencoder
from restudy.methods.training import keep_freed_memory

K, BATCH, STEPS, ROUNDS = 50, 20, 4, 5
"""The paper's samples and batch; steps in one timing, and timings of each way, in turns."""
Step = Callable[[DeepGaussianAutoencoder, Tensor, Tensor], Tensor]


def one_pass(model: DeepGaussianAutoencoder, x: Tensor, noise: Tensor) -> Tensor:
    """A step of the library: bound of every image, gradients in `.grad`."""
    return backward("iwae", model, x, [noise])


def sample_by_sample(model: DeepGaussianAutoencoder, x: Tensor, noise: Tensor) -> Tensor:
    """The same bound written down from its definition: one decoder pass for each sample, autograd of the logsumexp."""
    mean, log_std = model.encoder[0](x)
    posterior, prior = Normal(mean, log_std.exp()), Normal(torch.zeros_like(mean), torch.ones_like(mean))
    log_w = []
    for draws in noise:
        h = posterior.mean + posterior.stddev * draws
        log_x = Bernoulli(logits=model.pixels(h)).log_prob(x).sum(-1)  # type: ignore[no-untyped-call]
        log_w.append(log_x + prior.log_prob(h).sum(-1) - posterior.log_prob(h).sum(-1))  # type: ignore[no-untyped-call]
    bound = torch.logsumexp(torch.stack(log_w), 0) - torch.log(torch.tensor(float(len(noise))))
    (-bound.mean()).backward()  # type: ignore[no-untyped-call]
    return bound.detach()


def compare(k: int = K, batch: int = BATCH, steps: int = STEPS, rounds: int = ROUNDS) -> dict[str, float]:
    """CPU milliseconds of a step both ways (medians), and the largest relative difference of bounds and gradients.

    The two take turns, so that a busy machine slows both.
    """
    keep_freed_memory()
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = DeepGaussianAutoencoder(784, (50,), (200,))
    x = torch.bernoulli(torch.full((batch, 784), 0.3), generator=generator)
    noise = model.draw_noise(k, batch, generator)[0]
    found: dict[str, Tensor] = {}
    times: dict[str, list[float]] = {"one_pass": [], "sample_by_sample": []}
    for _ in range(rounds + 1):  # the first round warms up
        for name, step in (("one_pass", one_pass), ("sample_by_sample", sample_by_sample)):
            start = time.process_time()
            for _ in range(steps):
                model.zero_grad(set_to_none=True)
                bound = step(model, x, noise)
            times[name].append(1000 * (time.process_time() - start) / steps)
            gradients = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
            found[name], found[f"{name} gradient"] = bound, torch.cat(gradients)
    differences = [
        float((found[f"one_pass{part}"] - found[f"sample_by_sample{part}"]).abs().max())
        / float(found[f"one_pass{part}"].abs().max())
        for part in ("", " gradient")
    ]
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    return medians | {"bound_difference": differences[0], "gradient_difference": differences[1]}


def rows() -> list[dict[str, object]]:
    """Rows for `make bench`."""
    found = compare()
    differences = f"bounds {found['bound_difference']:.0e}, gradients {found['gradient_difference']:.0e}"
    times = f"{found['one_pass']:.1f} against {found['sample_by_sample']:.1f} ms CPU"
    note = f"batch {BATCH}, 784-200-200-50, {times}; relative differences: {differences}"
    what = f"IWAE k={K}: a training step that loops over the samples over one that takes them together"
    return [{"what": what, "ratio": found["sample_by_sample"] / found["one_pass"], "aim": 1.0, "note": note}]
