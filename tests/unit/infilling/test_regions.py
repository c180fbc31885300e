"""Removal curves, flipping areas, shapes, boxes and seams, on pictures small enough to count."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from restudy.methods.infilling import Blur, Constant, Local, composite
from restudy.methods.infilling.holes import rectangles
from restudy.methods.infilling.quality import leak, neighbour_distance, seam
from restudy.methods.infilling.regions import (
    area_under_curve,
    bounding_box,
    box_iou,
    flipping_area,
    largest_part_box,
    parts_and_perimeter,
    removal_curves,
    removal_fractions,
    removal_ranks,
)


class Sum(nn.Module):
    """Class 0 while more than half of the pixels are lit."""

    def forward(self, images: Tensor) -> Tensor:
        found = images.flatten(1).mean(1) - 0.5
        return torch.stack([found, -found], 1)


def test_ranks_follow_the_map_and_break_ties_at_random() -> None:
    ranks = removal_ranks(torch.tensor([[[[0.1, 0.9], [0.5, 0.3]]]]), 0)
    assert ranks.tolist() == [[3, 0, 1, 2]]
    tied = {tuple(removal_ranks(torch.zeros(1, 1, 2, 2), seed)[0].tolist()) for seed in range(20)}
    assert len(tied) > 5 and all(sorted(t) == [0, 1, 2, 3] for t in tied)


def test_removal_curve_by_hand() -> None:
    images = torch.ones(2, 1, 28, 28)
    fractions = removal_fractions()
    ranks = removal_ranks(torch.rand(2, 1, 28, 28), 0)
    curve, flips = removal_curves(Sum(), images, Constant(0.0), torch.tensor([0, 0]), ranks, fractions)
    kept = (784 - (fractions * 784).round()) / 784
    assert torch.allclose(curve[0], 2 * (kept - 0.5), atol=1e-5)
    # At 1/2 the two logits are equal and the first class wins; the next share flips it.
    assert float(flipping_area(flips, fractions)[0]) == pytest.approx(0.5 + 1 / 28, abs=1e-6)
    assert float(area_under_curve(curve, fractions)[1]) == pytest.approx(0.0, abs=0.01)
    never = removal_curves(Sum(), images, Constant(1.0), torch.tensor([0, 0]), ranks, fractions)[1]
    assert flipping_area(never, fractions).tolist() == [1.0, 1.0]


def test_fractions_cover_everything_once() -> None:
    fractions = removal_fractions()
    assert fractions[0] == 0 and float(fractions[-1]) == pytest.approx(1.0) and (torch.diff(fractions) > 0).all()
    assert torch.allclose(fractions * 784, (fractions * 784).round(), atol=1e-3)


def test_shape_of_a_square_and_of_two_dots() -> None:
    square = np.zeros((9, 9), dtype=bool)
    square[2:5, 3:6] = True
    assert parts_and_perimeter(square) == (1, pytest.approx(12**2 / 9))
    dots = np.zeros((9, 9), dtype=bool)
    dots[1, 1] = dots[2, 2] = True
    assert parts_and_perimeter(dots) == (2, pytest.approx(8**2 / 2))
    assert parts_and_perimeter(np.zeros((3, 3), dtype=bool)) == (0, 0.0)


def test_boxes() -> None:
    region = np.zeros((8, 8), dtype=bool)
    region[1:4, 2:6] = True
    region[7, 7] = True
    assert bounding_box(region) == (1, 2, 8, 8) and largest_part_box(region) == (1, 2, 4, 6)
    assert largest_part_box(np.zeros((3, 3), dtype=bool)) == (0, 0, 0, 0)
    assert box_iou((0, 0, 4, 4), (2, 2, 6, 6)) == pytest.approx(4 / 28)
    assert box_iou((0, 0, 2, 2), (2, 2, 4, 4)) == 0.0 and box_iou((1, 1, 3, 3), (1, 1, 3, 3)) == 1.0
    assert box_iou((0, 0, 0, 0), (0, 0, 0, 0)) == 0.0


def test_seam_is_zero_for_the_image_itself_and_grows_with_a_step() -> None:
    ramp = torch.linspace(0, 1, 28).expand(1, 1, 28, 28)
    hidden = torch.zeros(1, 1, 28, 28)
    hidden[:, :, 8:16, 8:16] = 1
    assert float(seam(ramp, ramp, hidden)) == 0.0
    grey, white = (composite(ramp, torch.full_like(ramp, value), hidden) for value in (0.45, 1.0))
    assert 0 < float(seam(ramp, grey, hidden)) < float(seam(ramp, white, hidden))
    assert math.isnan(float(seam(ramp, ramp, torch.zeros_like(hidden))))


def test_rectangles_by_hand() -> None:
    corners = torch.tensor([[0, 1], [2, 2]])
    assert rectangles(corners, 2, 4).nonzero()[:, 2:].tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]] + [
        [2, 2], [2, 3], [3, 2], [3, 3]
    ]  # fmt: skip
    assert rectangles(corners, torch.tensor([[1, 3], [2, 1]]), 4).sum((1, 2, 3)).tolist() == [3, 2]


def test_only_a_blur_leaks_what_is_hidden() -> None:
    images = torch.rand(3, 1, 16, 16, generator=torch.Generator().manual_seed(0))
    hidden = rectangles(torch.full((3, 2), 4), 6, 16).float()
    changes = [leak(filler, images, hidden, torch.zeros(3, 0), 1) for filler in (Constant(0.3), Local(5), Blur(2.0))]
    assert not changes[0].any() and not changes[1].any() and (changes[2] > 0.01).all()


def test_neighbour_distance_by_hand() -> None:
    real = torch.tensor([[0.0], [1.0], [10.0]])
    assert neighbour_distance(torch.tensor([[0.0], [11.0]]), real, 2).tolist() == [0.5, 5.5]
