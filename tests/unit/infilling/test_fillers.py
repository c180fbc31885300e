"""In-fillers: shapes, ranges, and whether they see what they must not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

from restudy.errors import ConfigError
from restudy.methods.infilling import (
    Blur,
    Constant,
    Generative,
    Infiller,
    Known,
    Local,
    RandomColour,
    Regression,
    composite,
)
from restudy.methods.infilling.fitting import fit_gan, fit_regression, fit_vae, shown_to_net
from restudy.methods.infilling.holes import random_holes
from restudy.methods.infilling.nets import ConditionalVae, Generator, PatchDiscriminator
from restudy.methods.infilling.noise import Noise

torch.manual_seed(0)
IMAGES = torch.rand(5, 1, 28, 28)
HIDDEN = random_holes(5, 28, torch.Generator().manual_seed(3))
FILLERS: dict[str, Infiller] = {
    "constant": Constant(0.3),
    "blur": Blur(2.0),
    "noise": RandomColour(),
    "local": Local(5),
    "vae": Generative(ConditionalVae(4)),
    "gan": Generative(Generator(4)),
    "regression": Regression(Generator(4)),
    "known": Known(torch.rand(5, 1, 28, 28)),
}


def noise_for(filler: Infiller) -> torch.Tensor:
    return torch.randn(5, *filler.noise_shape(28), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", FILLERS)
def test_pictures_have_the_images_shape_and_range(name: str) -> None:
    picture = FILLERS[name](IMAGES, HIDDEN, noise_for(FILLERS[name]))
    assert picture.shape == IMAGES.shape and picture.min() >= 0 and picture.max() <= 1 + 1e-6


@pytest.mark.parametrize("name", [n for n in FILLERS if n != "blur"])
def test_no_leak_from_hidden_pixels_to_the_last_bit(name: str) -> None:
    filler = FILLERS[name]
    for value in (torch.zeros_like(IMAGES), torch.rand_like(IMAGES), torch.full_like(IMAGES, float("nan"))):
        other = torch.where(HIDDEN > 0, value, IMAGES)
        same = filler(other, HIDDEN, noise_for(filler)), filler(IMAGES, HIDDEN, noise_for(filler))
        inside = HIDDEN > 0
        assert torch.equal(same[0][inside], same[1][inside])


def test_blur_does_leak_and_says_so() -> None:
    other = torch.where(HIDDEN > 0, 0.0, IMAGES)
    change = Blur(2.0)(other, HIDDEN, torch.zeros(5, 0)) - Blur(2.0)(IMAGES, HIDDEN, torch.zeros(5, 0))
    assert change[HIDDEN > 0].abs().max() > 0.1


@pytest.mark.parametrize("name", ["vae", "gan", "regression", "local"])
def test_conditional_fills_depend_on_the_surroundings(name: str) -> None:
    filler = FILLERS[name]
    hidden = torch.zeros_like(IMAGES)
    hidden[:, :, 10:14, 10:14] = 1
    moved = filler(IMAGES.roll(1, 0), hidden, noise_for(filler)) - filler(IMAGES, hidden, noise_for(filler))
    assert moved[hidden > 0].abs().max() > 1e-4


@pytest.mark.parametrize("name", ["vae", "gan", "noise"])
def test_drawing_fills_depend_on_the_noise(name: str) -> None:
    filler = FILLERS[name]
    assert not torch.equal(filler(IMAGES, HIDDEN, noise_for(filler)), filler(IMAGES, HIDDEN, -noise_for(filler)))


def test_static_fillers_depend_on_neither_mask_nor_noise() -> None:
    for filler in FILLERS.values():
        if filler.static:
            first = filler(IMAGES, HIDDEN, noise_for(filler))
            assert torch.equal(first, filler(IMAGES, 1 - HIDDEN, noise_for(filler)))


def test_blur_is_scipys() -> None:
    ours = Blur(2.0)(IMAGES, HIDDEN, torch.zeros(5, 0))[0, 0].numpy()
    theirs = gaussian_filter(IMAGES[0, 0].numpy(), 2.0, mode="mirror", truncate=3.0)
    assert np.abs(ours - theirs).max() < 1e-5


def test_local_mean_by_hand() -> None:
    image = torch.arange(16.0).view(1, 1, 4, 4)
    hidden = torch.zeros(1, 1, 4, 4)
    hidden[0, 0, 1, 1] = 1
    found = Local(3)(image, hidden, torch.zeros(1, 0))[0, 0, 1, 1]
    assert float(found) == pytest.approx((0 + 1 + 2 + 4 + 6 + 8 + 9 + 10) / 8)
    assert float(Local(3)(image, torch.ones(1, 1, 4, 4), torch.zeros(1, 0)).max()) == 0


def test_composite_takes_hidden_pixels_from_the_picture() -> None:
    assert torch.equal(
        composite(torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.eye(2)[None, None])[0, 0], torch.eye(2)
    )


def test_what_the_net_is_shown() -> None:
    shown = shown_to_net(torch.full_like(IMAGES, float("nan")), torch.ones_like(IMAGES))
    assert shown.shape == (5, 2, 28, 28) and torch.isfinite(shown).all()


@pytest.mark.parametrize("fit", [fit_vae, fit_gan, fit_regression])
def test_training_is_deterministic_lowers_the_error_and_leaves_the_global_state(fit: object) -> None:
    ramp = torch.linspace(0, 1, 28).expand(32, 1, 28, 28).clone()
    recipe = {"channels": 8, "steps": 40, "batch_size": 8, "learning_rate": 5e-3, "seed": 1}
    state = torch.random.get_rng_state()
    (net, losses), (again, _) = (fit(ramp, **recipe) for _ in range(2))  # type: ignore[operator]
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), again.state_dict().values(), strict=True))
    first = next(iter(losses.values()))
    assert sum(first[-5:]) < 0.8 * sum(first[:5])
    with pytest.raises(ConfigError):
        fit(ramp[:0], **recipe)  # type: ignore[operator]


def test_discriminator_judges_patches() -> None:
    assert PatchDiscriminator(4)(IMAGES, HIDDEN).shape == (5, 1, 7, 7)


def test_holes_are_of_three_kinds() -> None:
    holes = random_holes(300, 28, torch.Generator().manual_seed(0))
    assert holes.shape == (300, 1, 28, 28) and set(holes.unique().tolist()) == {0.0, 1.0}
    steps = torch.diff(holes, dim=3).abs().sum((1, 2, 3)) / holes.sum((1, 2, 3)).clamp(min=1)
    assert (steps < 0.25).sum() > 60 and (steps > 0.4).sum() > 60


def test_an_images_noise_does_not_depend_on_the_batch() -> None:
    together, alone = Noise([4, 5]), Noise([5])
    for draw in ("uniform", "normal", "uniform"):
        assert torch.equal(getattr(together, draw)(3, 2)[1:], getattr(alone, draw)(3, 2))
    with pytest.raises(ConfigError):
        Noise([])
