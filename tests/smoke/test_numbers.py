"""Distances between tensors, by hand."""

import math

import pytest
import torch

from nvdash.smoke import numbers
from nvdash.smoke.numbers import Check


def test_relative_l2_is_the_error_over_the_length():
    assert numbers.rel_l2(torch.tensor([3.0, 4.0]), torch.tensor([3.0, 0.0])) == pytest.approx(4 / 3)
    assert numbers.rel_l2(torch.tensor([math.nan]), torch.tensor([1.0])) == math.inf


def test_the_worst_block_shows_what_a_mean_hides():
    want = torch.ones(1, 32)
    got = want.clone()
    got[0, 16:] = 0
    assert numbers.worst_block(got, want) == 1.0
    assert numbers.rel_l2(got, want) == pytest.approx(math.sqrt(0.5))


def test_divergence_and_overlap_of_attention_weights():
    want = torch.log(torch.tensor([[0.5, 0.5]]))
    got = torch.log(torch.tensor([[0.25, 0.75]]))
    # 0.5 ln(0.5/0.25) + 0.5 ln(0.5/0.75) = 0.143841
    assert numbers.divergence(got, want) == pytest.approx(0.143841, abs=1e-6)
    assert numbers.divergence(want, want) == 0.0
    assert numbers.top_overlap(torch.tensor([[3.0, 2.0, 1.0]]), torch.tensor([[3.0, 1.0, 2.0]]), 2) == 0.5


def test_masked_logits_are_left_out():
    want = torch.tensor([[1.0, -math.inf]])
    assert numbers.logit_rmse(torch.tensor([[4.0, -math.inf]]), want) == 3.0
    assert numbers.divergence(torch.tensor([[2.0, -math.inf]]), want) == 0.0


def test_a_check_without_a_bar_only_shows_a_number():
    assert Check("x", "decode", 1.0).passed is None
    assert Check("x", "decode", 1.0, 1.0).passed is True
    assert Check("x", "decode", 0.9, 1.0, higher_is_better=True).passed is False
    assert Check("x", "decode", math.inf, 1.0).as_dict()["value"] is None
