"""What kdrun writes passes as a stranger's directory, with the weights of later trials too."""

import pytest
from verdicts import assert_passes

from runner.verify import VerifyOptions, verify

pytestmark = pytest.mark.long

SMALL = ("attention_block", "gru", "llama", "lstm", "mlp_block", "rnn_unrolled", "vit_block")
"""Samples of level 3 whose operations are those of the larger ones."""


@pytest.mark.parametrize("level", ["level1", "level2", "level3"])
def test_the_samples_pass(level, decomposed_samples):
    every = sorted((decomposed_samples / level).iterdir())
    chosen = every[::5] if level != "level3" else [d for d in every if d.name in SMALL]
    for directory in chosen:
        assert_passes(verify(directory, VerifyOptions()))
