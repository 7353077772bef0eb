"""A mask that is drawn for a file has the model's number of true elements, evenly over its rows."""

import pytest
import torch

from runner.graph.tracing.deciding_values import random_mask_text

SHAPES = [((96, 96), 9000), ((4, 1, 50, 7), 1300), ((2, 3, 5), 1), ((900,), 12), ((900, 1), 12)]


@pytest.mark.parametrize(("shape", "ones"), [*SHAPES, ((), 0)])
def test_it_is_spread_evenly(shape: tuple[int, ...], ones: int) -> None:
    mask = eval(random_mask_text(shape, ones))
    assert mask.shape == shape
    assert mask.sum() == ones
    if len(shape) > 1:
        rows = mask.flatten(0, -2).sum(1)
        assert rows.max() - rows.min() <= 1


def test_two_draws_differ() -> None:
    text = random_mask_text((8, 64), 100)
    assert not torch.equal(eval(text), eval(text))
