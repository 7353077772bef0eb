"""What kdrun writes passes as a stranger's directory, with the weights of later trials too."""

import pytest
from verdicts import assert_passes

from runner.verify import VerifyOptions, verify

pytestmark = pytest.mark.long

LARGE = {"gpt_oss", "gpt_oss_gathered", "mobilenet", "swin", "unet", "densenet", "resnet", "vgg"}
"""Their operations are in the others too, and they take seconds longer."""


@pytest.mark.parametrize("level", ["level1", "level2", "level3"])
def test_the_samples_pass(level, decomposed_samples):
    every = sorted((decomposed_samples / level).iterdir())
    chosen = every[::5] if level != "level3" else [d for d in every if d.name not in LARGE]
    for directory in chosen:
        assert_passes(verify(directory, VerifyOptions()))
