"""Perturbation against a loop that does one region at a time, and areas worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.perturbation import (
    Fill,
    Grid,
    abpc,
    aopc,
    blur,
    constant,
    from_images,
    generative,
    image_mean,
    perturbation_curves,
    pixel_steps,
    region_order,
    uniform,
)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def net(channels: int = 2) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, 3))


def problem(height: int = 9, width: int = 7, count: int = 5):
    images = torch.rand(count, 2, height, width, generator=seeded(1))
    return net(), images, torch.arange(count) % 3


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 14))
def test_regions_cover_every_pixel_once(height: int, width: int, size: int) -> None:
    grid = Grid(height, width, size)
    index = grid.index()
    assert index.unique().tolist() == list(range(grid.count))
    ones = grid.sums(torch.ones(2, height, width))
    assert ones.sum(1).tolist() == [height * width] * 2
    assert float(ones.max()) <= size * size
    if height % size == 0 and width % size == 0:
        assert bool((ones == size * size).all())


def test_sums_of_regions() -> None:
    maps = torch.arange(12.0).view(1, 3, 4)
    assert Grid(3, 4, 2).sums(maps).tolist() == [[0 + 1 + 4 + 5, 2 + 3 + 6 + 7, 8 + 9, 10 + 11]]


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9), st.integers(0, 99))
def test_orders_sort_and_break_ties_by_chance(scores: list[int], seed: int) -> None:
    values = torch.tensor([scores], dtype=torch.float64)
    most = region_order(values, "morf", seeded(seed))[0]
    least = region_order(values, "lerf", seeded(seed))[0]
    chance = region_order(values, "random", seeded(seed))[0]
    for order in (most, least, chance):
        assert sorted(order.tolist()) == list(range(len(scores)))
    assert [scores[i] for i in most] == sorted(scores, reverse=True)
    assert [scores[i] for i in least] == sorted(scores)


def test_ties_are_drawn_by_the_generator_alone() -> None:
    flat = torch.zeros(4, 30)
    assert torch.equal(region_order(flat, "morf", seeded(3)), region_order(flat, "morf", seeded(3)))
    assert not torch.equal(region_order(flat, "morf", seeded(3)), region_order(flat, "morf", seeded(4)))


def by_loop(model, images, target, order, grid, fill, steps, draws, generator):
    """x^(k) = g(x^(k-1), r_k), one region after the other; logits of the class, (N, steps + 1)."""
    index = grid.index()
    total = np.zeros((len(images), steps + 1))
    for _ in range(draws):
        drawn = fill.draw(images, generator)
        for n in range(len(images)):
            image = images[n].clone()
            for k in range(steps + 1):
                if k:
                    where = index == order[n, k - 1]
                    image[:, where] = drawn[n][:, where]
                with torch.no_grad():
                    total[n, k] += float(model(image[None])[0, target[n]])
    return total / draws


FILLS = {
    "uniform": uniform(-1, 2),
    "black": constant(0.0),
    "mean": image_mean(),
    "blur": blur(1.0),
    "dataset": from_images(torch.rand(6, 2, 9, 7, generator=seeded(9)), 2),
}


@pytest.mark.parametrize("name", FILLS)
@pytest.mark.parametrize("size", [2, 3])
def test_one_region_at_a_time(name: str, size: int) -> None:
    model, images, target = problem()
    grid, fill = Grid.of(images, size), FILLS[name]
    order = region_order(torch.rand(5, grid.count, generator=seeded(2)), "morf", seeded())
    found = perturbation_curves(
        model, images, target, {"a": order}, grid, fill, steps=5, draws=2, generator=seeded(7), batch_size=8
    )["a"]
    wanted = by_loop(model, images, target, order, grid, fill, 5, 2 if fill.random else 1, seeded(7))
    np.testing.assert_allclose(found.logit.numpy(), wanted, atol=2e-6)


def test_scores_agree() -> None:
    model, images, target = problem()
    grid = Grid.of(images, 3)
    order = region_order(torch.zeros(5, grid.count), "random", seeded())
    found = perturbation_curves(model, images, target, {"a": order}, grid, constant(), steps=4, generator=seeded())["a"]
    np.testing.assert_allclose(found.log_odds, torch.logit(found.probability), atol=1e-9)
    with torch.no_grad():
        start = torch.softmax(model(images).double(), 1).gather(1, target[:, None])[:, 0]
    np.testing.assert_allclose(found.probability[:, 0], start, atol=1e-7)


def test_all_orders_see_the_same_noise_and_meet_at_the_end() -> None:
    model, images, target = problem()
    grid = Grid.of(images, 3)
    scores = torch.rand(5, grid.count, generator=seeded(4))
    orders = {how: region_order(scores, how, seeded()) for how in ("morf", "lerf")}
    found = perturbation_curves(
        model, images, target, orders, grid, uniform(), steps=grid.count, draws=3, generator=seeded(5)
    )
    np.testing.assert_allclose(found["morf"].logit[:, -1], found["lerf"].logit[:, -1], atol=1e-6)
    np.testing.assert_allclose(found["morf"].logit[:, 0], found["lerf"].logit[:, 0])


@pytest.mark.parametrize("batch_size", [1, 3, 1000])
def test_batches_do_not_matter(batch_size: int) -> None:
    model, images, target = problem()
    grid = Grid.of(images, 2)
    order = {"a": region_order(torch.zeros(5, grid.count), "random", seeded())}
    how = {"steps": 6, "draws": 2}
    one = perturbation_curves(model, images, target, order, grid, uniform(), generator=seeded(1), **how)["a"]
    two = perturbation_curves(
        model, images, target, order, grid, uniform(), generator=seeded(1), batch_size=batch_size, **how
    )["a"]
    np.testing.assert_allclose(one.logit, two.logit, atol=1e-6)


def test_a_generative_fill_sees_what_is_left() -> None:
    model, images, target = problem()
    grid = Grid.of(images, 3)
    order = region_order(torch.zeros(5, grid.count), "random", seeded())
    seen = []

    def infill(shown, mask, generator):
        seen.append(mask.clone())
        left = (shown * ~mask[:, None]).sum((2, 3), keepdim=True) / (~mask).sum((1, 2)).clamp(min=1).view(-1, 1, 1, 1)
        return left.expand_as(shown)

    fill = generative(infill, random=False)
    found = perturbation_curves(model, images, target, {"a": order}, grid, fill, steps=3, generator=seeded())["a"]
    at = pixel_steps(order, grid)
    for k in range(3):
        assert torch.equal(seen[k], at < k + 1)
    shown = torch.where((at < 2)[:, None], infill(images, at < 2, None), images)
    with torch.no_grad():
        np.testing.assert_allclose(found.logit[:, 2], model(shown).gather(1, target[:, None])[:, 0], atol=1e-6)


def test_areas_by_hand() -> None:
    curve = torch.tensor([[4.0, 3.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    assert aopc(curve).tolist() == [(0 + 1 + 3 + 4) / 4, 0.0]
    assert aopc(curve, 2).tolist() == [(0 + 1 + 3) / 3, 0.0]
    other = torch.tensor([[4.0, 4.0, 4.0, 0.0], [1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
    assert abpc(other, curve).tolist() == [(0 + 1 + 3 + 0) / 4, (0 + 1 + 2 + 3) / 4]
    with pytest.raises(ConfigError, match="1 to 3"):
        aopc(curve, 4)


def test_fills() -> None:
    images = torch.rand(3, 2, 8, 8, generator=seeded(0)) * 5
    noise = uniform(-2.0, -1.0).draw(images, seeded())
    assert noise.shape == images.shape and -2.0 <= float(noise.min()) <= float(noise.max()) <= -1.0
    assert torch.allclose(image_mean().draw(images, seeded())[1, 0], images[1, 0].mean())
    flat = torch.full((1, 2, 8, 8), 3.0)
    assert torch.allclose(blur(2.0).draw(flat, seeded()), flat)
    assert float(blur(2.0).draw(images, seeded()).std()) < float(images.std())
    pool = torch.arange(4.0).view(4, 1, 1, 1).expand(4, 2, 8, 8)
    blocks = from_images(pool, 4).draw(images, seeded())
    assert all(len(blocks[:, :, r : r + 4, c : c + 4].flatten(1).unique(dim=1)[0]) == 1 for r in (0, 4) for c in (0, 4))
    assert set(blocks.unique().tolist()) <= {0.0, 1.0, 2.0, 3.0}
    assert len(blocks.unique()) > 1


def test_the_model_keeps_its_mode() -> None:
    model, images, target = problem()
    model.train()
    grid = Grid.of(images, 3)
    order = region_order(torch.zeros(5, grid.count), "random", seeded())
    perturbation_curves(model, images, target, {"a": order}, grid, constant(), steps=1, generator=seeded())
    assert all(module.training for module in model.modules())


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"steps": 99}, "steps"),
        ({"draws": 0}, "draws"),
        ({"target": torch.zeros(2, dtype=torch.int64)}, "target"),
        ({"target": torch.full((5,), 7)}, "classes"),
        ({"orders": {"a": torch.zeros(5, 3, dtype=torch.int64)}}, "orders"),
        ({"images": torch.zeros(5, 2, 4, 4)}, "images"),
    ],
)
def test_what_does_not_fit_is_named(change: dict, word: str) -> None:
    model, images, target = problem()
    grid = Grid.of(images, 3)
    given_ = {"images": images, "target": target, "steps": 2, "draws": 1}
    given_["orders"] = {"a": region_order(torch.zeros(5, grid.count), "random", seeded())}
    given_ |= change
    with pytest.raises(ConfigError, match=word):
        perturbation_curves(
            model, given_["images"], given_["target"], given_["orders"], grid, constant(), steps=given_["steps"],
            draws=given_["draws"], generator=seeded(),
        )  # fmt: skip


def test_other_mistakes() -> None:
    with pytest.raises(ConfigError, match="not known"):
        region_order(torch.zeros(1, 3), "best", seeded())
    with pytest.raises(ConfigError, match="not finite"):
        region_order(torch.tensor([[0.0, torch.nan]]), "morf", seeded())
    with pytest.raises(ConfigError, match="both or neither"):
        Fill("nothing")
    with pytest.raises(ConfigError, match="positive"):
        blur(0.0)
    with pytest.raises(ConfigError, match="pool"):
        from_images(torch.zeros(3, 4, 4))
