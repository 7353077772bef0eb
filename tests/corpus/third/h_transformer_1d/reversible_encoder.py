"""H-Transformer as an encoder in both directions: hierarchical attention in reversible blocks."""

import torch
from h_transformer_1d import HTransformer1D


class Model(torch.nn.Module):
    def __init__(self, tokens, dim, depth, length):
        super().__init__()
        self.net = HTransformer1D(
            num_tokens=tokens,
            dim=dim,
            depth=depth,
            causal=False,
            max_seq_len=length,
            heads=4,
            dim_head=32,
            block_size=16,
            reversible=True,
        )

    def forward(self, ids):
        return self.net(ids)


def get_inputs():
    return [torch.randint(0, 500, (2, 200))]


def get_init_inputs():
    return [500, 192, 3, 256]
