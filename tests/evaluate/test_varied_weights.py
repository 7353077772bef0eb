"""Weights that solutions are judged with: learned ones are moved, an author's constants stay."""

import torch
from torch import nn

from runner.evaluate.correctness import vary_learned_weights


def test_statistics_are_moved_and_a_mask_stays() -> None:
    model = nn.BatchNorm1d(4)
    model.register_buffer("mask", torch.ones(4, 4).tril())
    vary_learned_weights(model, 0)
    assert bool((model.weight != 1).all())
    assert bool((model.running_var != 1).all())
    assert torch.equal(model.mask, torch.ones(4, 4).tril())
