"""The emitted text is a product: what people read changes only where somebody meant it to."""

import pytest
import snapshots


@pytest.mark.parametrize("sample", snapshots.SHOWN)
def test_the_emitted_text_is_the_one_that_was_reviewed(sample: str) -> None:
    reviewed = snapshots.path_of(sample).read_text(encoding="utf-8")
    assert snapshots.written(sample) == reviewed, "if this is meant: make snapshots, and read it"
