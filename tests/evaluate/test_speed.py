"""Statistics of pairs: medians, limits, noise."""

from runner.evaluate.speed import summarize_pairs


def test_a_steady_difference_is_no_noise() -> None:
    speed = summarize_pairs([2.0, 2.1, 1.9, 2.0, 2.2, 2.0], [1.0, 1.0, 1.1, 1.0, 0.9, 1.0], 4)
    assert speed.speedup == 2.0
    assert not speed.is_noise
    assert speed.lowest > 1.7


def test_one_slow_pair_does_not_move_the_median() -> None:
    speed = summarize_pairs([1.0] * 9 + [50.0], [1.0] * 10, 1)
    assert speed.speedup == 1.0
    assert speed.is_noise


def test_a_difference_that_changes_its_sign_is_noise() -> None:
    speed = summarize_pairs([1.0, 2.0, 1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0, 2.0, 1.0], 1)
    assert speed.is_noise
