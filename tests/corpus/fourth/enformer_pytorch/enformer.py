"""Enformer: convolution tower with attention pooling over a DNA sequence, transformer with the
three relative position bases, target-length crop, human and mouse heads."""

import torch
from enformer_pytorch import Enformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth, heads, target_length):
        super().__init__()
        self.net = Enformer.from_hparams(
            dim=dim,
            depth=depth,
            heads=heads,
            num_downsamples=7,
            output_heads={"human": 531, "mouse": 164},
            target_length=target_length,
            dim_divisible_by=dim // 12,
        )
        for parameter in self.parameters():
            if parameter.abs().max() < 1e-4:  # starts as (almost) zero, and would hide its branch
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, sequence):
        return self.net(sequence)


def get_inputs():
    return [torch.randint(0, 5, (1, 128 * 96))]


def get_init_inputs():
    return [384, 4, 8, 64]
