"""RETRO: each chunk of the text attends to its retrieved neighbours, encoded with the chunk."""

import torch
from retro_pytorch import RETRO


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = RETRO(
            num_tokens=2000,
            chunk_size=32,
            max_seq_len=128,
            enc_dim=dim,
            enc_depth=2,
            dec_dim=dim,
            dec_depth=depth,
            dec_cross_attn_layers=(2, 4),
            heads=8,
            dim_head=32,
            use_deepnet=True,
        )

    def forward(self, tokens, retrieved):
        return self.net(tokens, retrieved)


def get_inputs():
    return [torch.randint(1, 2000, (2, 128)), torch.randint(1, 2000, (2, 4, 2, 64))]


def get_init_inputs():
    return [256, 4]
