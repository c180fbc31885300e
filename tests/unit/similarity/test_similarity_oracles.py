"""Similarity values equal those of scipy and scikit-image, pair by pair."""

import numpy as np
import pytest
import scipy.stats
import skimage.feature
import skimage.metrics
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from restudy.errors import ConfigError
from restudy.methods.similarity import (
    METRICS,
    Reference,
    compare,
    hog_descriptors,
    hog_similarity,
    metrics,
    pool_channels,
    ranks,
    spearman,
    ssim,
    unit_max,
)
from restudy.methods.similarity.ssim import image_ssim

RNG = np.random.default_rng(0)


def maps(number=6, size=28, ties=False, seed=0):
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(number, size, size))
    if ties:
        found = np.round(found)
        found[:, : size // 3] = 0.0
    return found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spearman_equals_scipy(ties, dtype):
    left, right = maps(ties=ties).astype(dtype), maps(ties=ties, seed=1).astype(dtype)
    right = right + left / 2
    expected = [scipy.stats.spearmanr(a.ravel(), b.ravel()).statistic for a, b in zip(left, right, strict=True)]
    np.testing.assert_allclose(spearman(left, right), expected, atol=1e-12)
    np.testing.assert_allclose(spearman(torch.from_numpy(left), torch.from_numpy(right)), expected, atol=1e-12)
    found = compare(left, right, ["spearman", "spearman_abs"])
    np.testing.assert_allclose(found["spearman"], expected, atol=1e-12)
    expected = [
        scipy.stats.spearmanr(abs(a).ravel(), abs(b).ravel()).statistic for a, b in zip(left, right, strict=True)
    ]
    np.testing.assert_allclose(found["spearman_abs"], expected, atol=1e-12)


@pytest.mark.parametrize("ties", [False, True])
def test_foreground_spearman_equals_scipy_on_the_kept_pixels(ties):
    left, right = maps(ties=ties), maps(ties=ties, seed=1)
    mask = RNG.random(left.shape) < np.linspace(0.1, 0.9, len(left))[:, None, None]
    found = compare(left, right, ["spearman_foreground", "spearman_abs_foreground"], mask=mask)
    for name, change in (("spearman_foreground", lambda x: x), ("spearman_abs_foreground", np.abs)):
        expected = [
            scipy.stats.spearmanr(change(a[m]), change(b[m])).statistic
            for a, b, m in zip(left, right, mask, strict=True)
        ]
        np.testing.assert_allclose(found[name], expected, atol=1e-12)


@settings(deadline=None, max_examples=50)
@given(hnp.arrays(np.float64, (3, 9), elements=st.integers(-2, 2).map(float)))
def test_ranks_equal_scipy(values):
    np.testing.assert_array_equal(ranks(values), scipy.stats.rankdata(values, axis=1))


@settings(deadline=None, max_examples=50)
@given(hnp.arrays(np.float64, (2, 12), elements=st.floats(-1e3, 1e3, width=16)), st.floats(0.5, 8))
def test_spearman_properties(values, factor):
    left, right = values[:1], values[1:]
    value = spearman(left, right)
    constant = len(set(left[0])) == 1 or len(set(right[0])) == 1
    assert np.isnan(value[0]) == constant
    if not constant:
        assert -1 <= value[0] <= 1
        np.testing.assert_allclose(spearman(right, left), value)
        np.testing.assert_allclose(spearman(left * 2 ** factor.__floor__(), -right), -value, atol=1e-12)
        np.testing.assert_allclose(spearman(left, left), 1.0)


@pytest.mark.parametrize(("height", "width"), [(28, 28), (11, 30), (64, 48)])
@pytest.mark.parametrize("data_range", [1.0, 2.0])
def test_ssim_equals_scikit_image(height, width, data_range):
    left = np.abs(RNG.normal(size=(4, height, width)))
    right = np.abs(left + 0.3 * RNG.normal(size=left.shape))
    scaled = [np.abs(x) / np.abs(x).max((1, 2), keepdims=True) for x in (left, right)]
    expected = [
        skimage.metrics.structural_similarity(a, b, gaussian_weights=True, sigma=1.5, data_range=data_range)
        for a, b in zip(*scaled, strict=True)
    ]
    np.testing.assert_allclose(ssim(left, right, data_range=data_range), expected, atol=1e-10)
    np.testing.assert_allclose(ssim(-left, right * 7, data_range=data_range), expected, atol=1e-10)
    name = "ssim" if data_range == 1 else "ssim_legacy"
    np.testing.assert_allclose(compare(left, right, [name])[name], expected, atol=1e-10)
    np.testing.assert_allclose(image_ssim(*scaled, data_range=data_range), expected, atol=1e-10)


@pytest.mark.parametrize(("size", "cell", "block"), [(28, 4, 1), (28, 5, 1), (30, 7, 2), (64, 16, 3), (28, 14, 2)])
@pytest.mark.parametrize("sparse", [False, True])
def test_hog_equals_scikit_image(size, cell, block, sparse):
    images = np.abs(maps(5, size, ties=sparse)) / 4
    expected = [
        skimage.feature.hog(image, pixels_per_cell=(cell, cell), cells_per_block=(block, block)) for image in images
    ]
    found = hog_descriptors(images, cell=cell, block=block)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    left, right = unit_max(images), unit_max(images[::-1].copy())
    pairs = [
        [skimage.feature.hog(x, pixels_per_cell=(cell, cell), cells_per_block=(block, block)) for x in pair]
        for pair in zip(left, right, strict=True)
    ]
    expected = [scipy.stats.spearmanr(*pair).statistic for pair in pairs]
    np.testing.assert_allclose(hog_similarity(-left, right, cell=cell, block=block), expected, atol=1e-12)


def test_a_map_equals_itself_and_undefined_maps_are_nan():
    found = maps(5)
    found[1] = 0.0
    found[2] = 3.0
    found[3, 4, 4] = np.nan
    mask = np.ones(found.shape, dtype=bool)
    mask[4] = False
    for name, value in compare(found, found.copy(), mask=mask).items():
        assert value.shape == (5,) and value.dtype == np.float64
        np.testing.assert_allclose(value[0], 1.0)
        assert np.isnan(value[1]) and np.isnan(value[3]), name
        assert np.isnan(value[2]) == (not name.startswith("ssim")), name
        assert np.isnan(value[4]) == name.endswith("_foreground")
    defined = maps(5, seed=2)
    for name, value in compare(defined, found, metrics()).items():
        assert list(np.isnan(value)) == [False, True, not name.startswith("ssim"), True, False], name


def test_a_reference_gives_what_single_calls_give():
    left, right = maps(4)[:, None], torch.from_numpy(maps(4, seed=3)[:, None])
    found = Reference(left).compare(right, metrics())
    assert list(found) == ["spearman", "spearman_abs", "ssim", "ssim_legacy", "hog"]
    np.testing.assert_array_equal(found["ssim"], ssim(left, right))
    np.testing.assert_array_equal(found["hog"], hog_similarity(left, right))
    np.testing.assert_array_equal(found["spearman"], spearman(left, right))
    assert set(METRICS) == set(metrics(foreground=True))


def test_pooling():
    found = RNG.normal(size=(2, 3, 4, 4))
    np.testing.assert_allclose(pool_channels(found, "sum"), found.sum(1))
    np.testing.assert_allclose(pool_channels(found, "abs_sum"), abs(found).sum(1))
    np.testing.assert_allclose(pool_channels(torch.from_numpy(found), "l2"), (found**2).sum(1) ** 0.5)
    np.testing.assert_allclose(pool_channels(found, "linf"), abs(found).max(1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hog_descriptors(maps(1), cell=16, block=3), "do not fit into 28 x 28 pixels; choose smaller"),
        (lambda: hog_descriptors(maps(1), cell=29), "do not fit"),
        (lambda: ssim(maps(1, 10), maps(1, 10)), "at least 11 pixels a side"),
        (lambda: ssim(maps(1), maps(1), data_range=0), "data_range is 0"),
        (lambda: compare(maps(1), maps(2)), r"\(1, 28, 28\) and \(2, 28, 28\)"),
        (lambda: compare(np.ones((1, 3, 28, 28)), maps(1)), "pool_channels first"),
        (lambda: compare(maps(1), maps(1), ["psnr"]), "metric 'psnr' is not known; metrics: spearman"),
        (lambda: compare(maps(1), maps(1), ["spearman_foreground"]), "needs a mask"),
        (lambda: compare(maps(1), maps(1), mask=np.ones((2, 28, 28))), "mask of shape"),
        (lambda: pool_channels(maps(1), "sum"), r"give \(M, C, H, W\)"),
        (lambda: pool_channels(maps(1)[None], "mean"), "allowed: sum, abs_sum, l2, linf"),
        (lambda: spearman(np.ones(3), np.ones(3)), r"give a stack \(M, N\)"),
        (lambda: spearman(np.ones((1, 3)), np.ones((1, 4))), "stacks of shape"),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_one_line(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
