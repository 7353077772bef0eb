"""MEGABYTE: a hierarchy of two transformers over patches of bytes, spatial tokens from flattened
patches, logits and loss."""

import torch
from MEGABYTE_pytorch import MEGABYTE


class Model(torch.nn.Module):
    def __init__(self, dims, depths, lengths):
        super().__init__()
        self.net = MEGABYTE(
            num_tokens=256,
            dim=tuple(dims),
            depth=tuple(depths),
            max_seq_len=tuple(lengths),
            dim_head=32,
            heads=8,
            flash_attn=False,
        )

    def forward(self, data):
        return self.net(data, return_loss=False), self.net(data, return_loss=True)


def get_inputs():
    return [torch.randint(0, 256, (2, 160))]


def get_init_inputs():
    return [[256, 128], [4, 2], [64, 4]]
