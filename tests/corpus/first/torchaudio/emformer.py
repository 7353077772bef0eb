"""torchaudio's Emformer: segments of speech with memory, left and right context."""

import torch
from torchaudio.models import Emformer


class Model(Emformer):
    def __init__(self, width, layers):
        super().__init__(
            width,
            4,
            2 * width,
            layers,
            segment_length=8,
            left_context_length=8,
            right_context_length=4,
            max_memory_size=2,
        )


def get_inputs():
    return [torch.randn(2, 36, 64), torch.tensor([36, 28])]


def get_init_inputs():
    return [64, 3]
