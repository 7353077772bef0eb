"""H-Transformer: a causal language model whose attention is a hierarchy of blocks, each level
coarser than the one below, with rotary positions."""

import torch
from h_transformer_1d import HTransformer1D


class Model(torch.nn.Module):
    def __init__(self, tokens, dim, depth, length):
        super().__init__()
        self.net = HTransformer1D(
            num_tokens=tokens,
            dim=dim,
            depth=depth,
            causal=True,
            max_seq_len=length,
            heads=8,
            dim_head=32,
            block_size=32,
            shift_tokens=True,
        )

    def forward(self, ids, mask):
        return self.net(ids, mask=mask)


def get_inputs():
    mask = torch.ones(1, 512).bool()
    mask[:, 470:] = False
    return [torch.randint(0, 1000, (1, 512)), mask]


def get_init_inputs():
    return [1000, 256, 4, 512]
