"""Paraformer's encoder: self-attention with a memory block (a depthwise convolution over the
values), masked for the lengths."""

import torch
from funasr.models.sanm.encoder import SANMEncoder


class Model(torch.nn.Module):
    def __init__(self, features, size, blocks):
        super().__init__()
        self.net = SANMEncoder(
            input_size=features,
            output_size=size,
            attention_heads=4,
            linear_units=1024,
            num_blocks=blocks,
            input_layer="pe",
            kernel_size=11,
        )

    def forward(self, features, lengths):
        out, lengths, _ = self.net(features, lengths)
        return out, lengths


def get_inputs():
    return [torch.randn(2, 80, 560), torch.tensor([80, 61])]


def get_init_inputs():
    return [560, 256, 6]
