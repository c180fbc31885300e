"""Complexity of maps whose values are known."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from PIL import Image

from restudy.errors import ConfigError
from restudy.methods.perturbation import entropy_bits, grey_levels, png_bytes, total_variation

NOISE = np.random.default_rng(0).normal(size=(2, 32, 32))


def test_grey_levels() -> None:
    maps = np.array([[[-2.0, 0.0], [1.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 3.0], [0.0, 3.0]]])
    assert grey_levels(maps).tolist()[0] == [[0, 128], [191, 255]]
    assert set(grey_levels(maps)[1].ravel().tolist()) == {128}
    assert grey_levels(maps)[2].min() >= 127


def test_entropy() -> None:
    flat, two, four = np.ones((8, 8)), np.ones((8, 8)), np.ones((8, 8))
    two[:4] = -1.0
    four[::2, ::2], four[1::2, ::2], four[::2, 1::2] = -1.0, 0.0, 0.5
    assert entropy_bits(np.stack([flat, two, four])).tolist() == pytest.approx([0.0, 1.0, 2.0])
    assert 6.5 < entropy_bits(NOISE)[0] <= 8.0


def test_bytes_are_those_of_the_file() -> None:
    buffer = io.BytesIO()
    Image.fromarray(grey_levels(NOISE)[0]).save(buffer, format="PNG", compress_level=9)
    assert png_bytes(NOISE)[0] == len(buffer.getvalue())
    smooth = np.outer(np.linspace(0, 1, 32), np.ones(32))[None]
    assert png_bytes(smooth)[0] < 0.5 * png_bytes(NOISE)[0]


def test_scale_does_not_matter() -> None:
    for measure in (entropy_bits, png_bytes, total_variation):
        assert measure(NOISE * 7.0).tolist() == pytest.approx(measure(NOISE).tolist())


def test_total_variation_by_hand() -> None:
    maps = np.array([[[0.0, 2.0], [4.0, 2.0]]])
    assert total_variation(maps).tolist() == [(2 + 2 + 4 + 0) / (4 * 4)]
    mask = np.array([[[True, True], [False, False]]])
    assert total_variation(maps, mask).tolist() == [2 / 4]
    assert math.isnan(total_variation(np.zeros((1, 3, 3)))[0])
    assert math.isnan(total_variation(maps, np.zeros((1, 2, 2), dtype=bool))[0])


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="finite maps"):
        entropy_bits(np.full((1, 2, 2), np.nan))
    with pytest.raises(ConfigError, match="mask"):
        total_variation(NOISE, np.ones((2, 3, 3), dtype=bool))
