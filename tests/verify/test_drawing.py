"""Many random numbers quickly: what a component draws for itself repeats after a block."""

import pytest
import torch
from torch import nn

from runner.verify.runtime.random_blocks import BLOCK, RepeatedDraws

MANY = 2 * BLOCK + 10


def _drawn(draw, *, repeated):
    torch.manual_seed(3)
    if not repeated:
        return draw()
    with RepeatedDraws():
        return draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(MANY),
        lambda: torch.randn(2, MANY // 2, dtype=torch.bfloat16),
        lambda: torch.randint(7, (MANY,)),
        lambda: torch.randint(-2, 7, (MANY,), dtype=torch.int32),
        lambda: torch.empty(MANY).uniform_(-2, 2),
        lambda: torch.empty(MANY, dtype=torch.float64).normal_(1.0, 3.0),
        lambda: torch.rand(4, MANY).t() * 2 - 1,
        lambda: nn.init.kaiming_uniform_(torch.empty(1024, MANY // 1024)),
    ],
)
def test_large_draws_have_the_same_shape_dtype_stride_and_distribution(draw):
    plain, quick = _drawn(draw, repeated=False), _drawn(draw, repeated=True)

    assert (quick.shape, quick.dtype, quick.stride()) == (plain.shape, plain.dtype, plain.stride())
    one, other = plain.double(), quick.double()
    assert other.mean().item() == pytest.approx(one.mean().item(), abs=0.02)
    assert other.std().item() == pytest.approx(one.std().item(), rel=0.01)


def test_the_numbers_repeat_after_a_block_and_not_at_a_row():
    drawn = _drawn(lambda: torch.rand(3, BLOCK), repeated=True)
    rows = _drawn(lambda: torch.rand(1024, 4096), repeated=True)

    assert torch.equal(drawn[0], drawn[1])
    assert len({tuple(row[:8].tolist()) for row in rows}) == 1024


def test_small_draws_are_what_they_always_are():
    def draw():
        return torch.randn(BLOCK), torch.randint(5, (9,)), torch.rand(3)

    for plain, quick in zip(_drawn(draw, repeated=False), _drawn(draw, repeated=True), strict=True):
        assert torch.equal(plain, quick)
