"""ReLA: causal language model whose attention is rectified instead of soft-maxed, with gated
normalization of the result."""

import torch
from rela_transformer import ReLATransformer


class Model(torch.nn.Module):
    def __init__(self, tokens, dim, depth, length):
        super().__init__()
        self.net = ReLATransformer(
            num_tokens=tokens, dim=dim, depth=depth, max_seq_len=length, dim_head=32, heads=8
        )

    def forward(self, tokens, mask):
        return self.net(tokens, mask=mask)


def get_inputs():
    return [torch.randint(0, 1000, (2, 128)), torch.arange(128) < torch.tensor([[128], [100]])]


def get_init_inputs():
    return [1000, 256, 6, 256]
