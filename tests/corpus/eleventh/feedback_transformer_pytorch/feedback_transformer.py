"""Feedback Transformer: a language model whose layers all attend a shared memory."""

import torch
from feedback_transformer_pytorch import FeedbackTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = FeedbackTransformer(
            num_tokens=1000, dim=128, depth=4, seq_len=2, mem_len=16, dim_head=32, heads=4
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 1000, (2, 12))]


def get_init_inputs():
    return []
