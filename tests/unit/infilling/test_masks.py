"""Objectives by enumeration, masks with a known answer, batching, signs."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.infilling import Blur, Constant, Generative, Settings, bbmp, fido, log_odds, occlusion
from restudy.methods.infilling.nets import Generator
from restudy.methods.infilling.objectives import objective_score, penalised_area, saliency

FAST = Settings(grid=7, iterations=60, learning_rate=0.3, samples=4)


class Corner(nn.Module):
    """Class 0 when the upper left quarter is bright."""

    def forward(self, images: Tensor) -> Tensor:
        bright = 12 * images[:, 0, :14, :14].mean((1, 2)) - 4
        return torch.stack([bright, -bright], 1)


@pytest.fixture
def net() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Conv2d(1, 4, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 144, 3))
    return nn.Sequential(*layers).eval().requires_grad_(False)


def test_log_odds_is_that_of_the_softmax() -> None:
    logits = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 1, 2, 3, 0, 1])
    p = logits.softmax(1).gather(1, target[:, None])[:, 0]
    assert torch.allclose(log_odds(logits, target), torch.log(p) - torch.log1p(-p))
    assert torch.isfinite(log_odds(torch.tensor([[500.0, -500.0]]), torch.tensor([0]))).all()


@pytest.mark.parametrize("objective", ["sdr", "ssr"])
def test_the_optimum_of_theta_is_the_best_hard_mask(objective: str) -> None:
    """Enumerated: 16 hard masks of a 2 x 2 image; the expectation is multilinear in theta, so a corner is optimal."""

    class Weighted(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            found = (
                images.flatten(1) @ torch.tensor([4.0, 1.5, -2.0, 0.5]) + 2 * images[:, 0, 0, 0] * images[:, 0, 1, 1]
            )
            return torch.stack([found, -found], 1)

    image, fill, weight = torch.ones(1, 1, 2, 2), Constant(0.0), 2.0
    masks = torch.tensor(list(itertools.product([0.0, 1.0], repeat=4))).view(16, 1, 2, 2)
    target = torch.zeros(16, dtype=torch.long)
    score = objective_score(Weighted(), image.expand_as(masks), torch.zeros_like(masks), masks, target, objective)
    paid = (1 - masks if objective == "ssr" else masks).flatten(1).sum(1)
    best = masks[int((score + weight * paid).argmin())]
    settings = Settings(grid=2, iterations=150, learning_rate=0.3, samples=8)
    found = fido(Weighted(), image, target[:1], fill, [weight], [0], objective=objective, settings=settings)
    assert torch.equal((found.theta(2)[0, 0] > 0.5).float(), best)


def test_penalty_counts_what_is_paid_for() -> None:
    theta = torch.tensor([[[[0.2, 0.8], [0.0, 1.0]]]])
    assert float(penalised_area(theta, "sdr")) == pytest.approx(2.0)
    assert float(penalised_area(theta[..., :1], "ssr")) == pytest.approx(1.8)


@pytest.mark.parametrize("objective", ["sdr", "ssr", "joint"])
def test_saliency_is_high_where_the_class_is(objective: str) -> None:
    images = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(1)) * 0.2 + 0.8
    target = torch.zeros(3, dtype=torch.long)
    masks = fido(Corner(), images, target, Constant(0.0), [0.02], [0, 1, 2], objective=objective, settings=FAST)  # type: ignore[arg-type]
    shown = masks.saliency(28)[0]
    assert (shown[:, :, :14, :14].mean((1, 2, 3)) > 0.4).all()
    assert (shown[:, :, 16:, 16:].mean((1, 2, 3)) < 0.2).all()
    theta = masks.theta(28)[0]
    assert torch.equal(shown, saliency(theta, objective))  # type: ignore[arg-type]
    assert torch.equal(saliency(theta, "ssr"), 1 - theta) and torch.equal(saliency(theta, "sdr"), theta)


def test_a_dearer_region_is_smaller() -> None:
    images = torch.ones(2, 1, 28, 28)
    masks = fido(
        Corner(), images, torch.zeros(2, dtype=torch.long), Constant(0.0), [0.005, 0.05], [0, 1], settings=FAST
    )
    area = masks.theta(28).flatten(1).sum(1)
    assert area[1] < area[0] and masks.trace.shape == (2, 60)


@pytest.mark.parametrize("filler", [Constant(0.4), Generative(Generator(4).eval().requires_grad_(False))])
def test_a_batch_gives_what_a_loop_gives(net: nn.Module, filler: object) -> None:
    images = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(2))
    target, seeds = net(images).argmax(1), [10, 11, 12, 13]
    together = fido(net, images, target, filler, [0.0001, 0.0003], seeds, settings=FAST).theta(28) > 0.5  # type: ignore[arg-type]
    for i in range(4):
        for run, penalty in enumerate((0.0001, 0.0003)):
            part = images[i : i + 1], target[i : i + 1]
            alone = fido(net, *part, filler, [penalty], seeds[i : i + 1], settings=FAST).theta(28)[0, 0] > 0.5  # type: ignore[arg-type]
            both, either = (together[run, i] & alone).sum(), (together[run, i] | alone).sum()
            assert both >= 0.95 * either
    assert (together.flatten(2).any(2)).sum() >= 6, "empty regions would agree for nothing"


def test_bbmp_stays_in_its_range_and_finds_the_corner() -> None:
    images = torch.ones(2, 1, 28, 28)
    masks = bbmp(Corner(), images, torch.zeros(2, dtype=torch.long), Constant(0.0), [0.01], [0, 1], settings=FAST)
    assert masks.grid.min() >= 0 and masks.grid.max() <= 1
    shown = masks.saliency(28)[0]
    assert shown[:, :, :14, :14].mean() > 3 * shown[:, :, 16:, 16:].mean()


def test_the_infiller_sees_the_rounded_mask_and_gets_no_gradient() -> None:
    seen: list[Tensor] = []

    class Watching:
        static = False

        def noise_shape(self, size: int) -> tuple[int, ...]:
            return (0,)

        def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
            seen.append(hidden)
            return torch.zeros_like(images)

    fido(Corner(), torch.ones(1, 1, 28, 28), torch.zeros(1, dtype=torch.long), Watching(), [0.01], [0], settings=FAST)
    assert len(seen) == FAST.iterations and all(set(m.unique().tolist()) <= {0.0, 1.0} for m in seen)
    assert not any(mask.requires_grad for mask in seen)


def test_what_does_not_fit_is_refused() -> None:
    image, target = torch.ones(1, 1, 28, 28), torch.zeros(1, dtype=torch.long)
    with pytest.raises(ConfigError, match="seeds"):
        fido(Corner(), image, target, Constant(0.0), [0.1], [0, 1])
    with pytest.raises(ConfigError, match="known"):
        fido(Corner(), image, target, Constant(0.0), [0.1], [0], objective="both")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="static"):
        fido(Corner(), image, target, Generative(Generator(4)), [0.1], [0], objective="joint")
    with pytest.raises(ConfigError, match="window"):
        occlusion(Corner(), image, target, Constant(0.0), [0], window=40, stride=1)


@pytest.mark.parametrize(("window", "stride"), [(4, 2), (7, 7)])
def test_occlusion_is_captums(net: nn.Module, window: int, stride: int) -> None:
    from captum.attr import Occlusion

    images = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(4))
    target = net(images).argmax(1)
    ours = occlusion(net, images, target, Constant(0.4), [0, 1, 2], window=window, stride=stride)
    explained = Occlusion(lambda x: log_odds(net(x), target))
    shape = (1, window, window)
    theirs = explained.attribute(images, shape, strides=(1, stride, stride), baselines=0.4)
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_occlusion_with_blur_runs(net: nn.Module) -> None:
    images = torch.rand(1, 1, 28, 28)
    assert occlusion(net, images, net(images).argmax(1), Blur(2.0), [0], window=8, stride=4).shape == images.shape
