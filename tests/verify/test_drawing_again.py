"""What was drawn and is still there is not drawn again."""

from contextlib import suppress

import pytest
import torch

from runner.verify.runtime.random_blocks import DifferentDrawError, Draws

MANY = 1 << 17


@pytest.fixture
def again():
    """Draws once as a parent would, holds what came of it, then draws as its child would."""
    draws = Draws()

    def draw(first, second):
        torch.manual_seed(3)
        with draws.control_draws(repeated=False, reuse=False):
            held = first()
        torch.manual_seed(3)
        with draws.control_draws(repeated=False, reuse=True):
            return held, second()

    return draw


def test_the_same_draws_from_the_same_state_share_their_memory(again):
    def draw():
        return torch.rand(MANY), torch.randn(4, MANY), torch.randint(9, (MANY,)), torch.rand(3)

    held, drawn = again(draw, draw)

    same = [a.data_ptr() == b.data_ptr() for a, b in zip(held, drawn, strict=True)]
    assert same == [True, True, True, False]
    assert torch.equal(held[3], drawn[3])  # as if those before it had been drawn


@pytest.mark.parametrize(
    "second",
    [
        lambda: torch.randn(MANY),
        lambda: torch.rand(MANY + 1),
        lambda: torch.rand(MANY, dtype=torch.float64),
        lambda: (torch.rand(1), torch.rand(MANY))[1],
    ],
)
def test_other_draws_are_drawn(again, second):
    _, drawn = again(lambda: torch.rand(MANY), second)
    torch.manual_seed(3)

    assert torch.equal(drawn, second())


def test_what_is_gone_or_was_changed_is_drawn(again):
    gone, drawn = again(lambda: torch.rand(MANY) * 2, lambda: torch.rand(MANY))
    assert torch.equal(gone, drawn * 2)

    changed, drawn = again(lambda: torch.rand(MANY).mul_(2), lambda: torch.rand(MANY))
    assert torch.equal(changed, drawn * 2)
    assert changed.data_ptr() != drawn.data_ptr()


@pytest.mark.parametrize(
    "change",
    [lambda x: x.mul_(2), lambda x: x.data.zero_(), lambda x: x[0].fill_(1), torch.Tensor.t_],
)
def test_nobody_changes_what_it_was_given(again, change):
    def draw():
        return torch.rand(2, MANY)

    torch.manual_seed(3)
    as_it_was = draw()
    seen = []

    def second():
        with suppress(RuntimeError):
            seen.append(draw())
            change(seen[0])

    with pytest.raises(DifferentDrawError):
        again(draw, second)
    assert torch.equal(seen[0], as_it_was)


def test_much_that_is_not_there_is_not_drawn_to_be_compared(again, monkeypatch):
    monkeypatch.setattr("runner.verify.runtime.random_blocks.DRAWN_AGAIN_BYTES", 1 << 10)

    with pytest.raises(DifferentDrawError, match="something else"):
        again(lambda: torch.rand(MANY), lambda: torch.randn(MANY))


def test_blocks_that_repeat_are_not_what_is_drawn_in_full():
    draws = Draws()
    torch.manual_seed(3)
    with draws.control_draws(repeated=True, reuse=False):
        block = torch.rand(2_100_000)
    torch.manual_seed(3)
    with draws.control_draws(repeated=False, reuse=True):
        full = torch.rand(2_100_000)

    assert not torch.equal(block, full)
