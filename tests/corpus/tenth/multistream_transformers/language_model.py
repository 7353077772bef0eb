"""Language model with four parallel streams, from multistream_transformers."""

import torch
from multistream_transformers import MultistreamTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.model = MultistreamTransformer(
            num_tokens=tokens, dim=dim, depth=depth, max_seq_len=256, causal=True, num_streams=4
        )

    def forward(self, ids, mask):
        return self.model(ids, mask=mask)


def get_inputs():
    mask = torch.ones(2, 192, dtype=torch.bool)
    mask[1, 150:] = False
    return [torch.randint(0, 1000, (2, 192)), mask]


def get_init_inputs():
    return [1000, 256, 3]
