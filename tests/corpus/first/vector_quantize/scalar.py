"""vector-quantize-pytorch's finite scalar and lookup-free quantisers, one after another."""

import torch
from vector_quantize_pytorch import FSQ, LFQ


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scalar = FSQ(levels=[8, 5, 5, 5], dim=32)
        self.binary = LFQ(dim=32, codebook_size=256)

    def forward(self, tokens):
        quantized, scalar_ids = self.scalar(tokens)
        bits = self.binary(quantized)
        return bits.quantized, scalar_ids, bits.indices


def get_inputs():
    return [torch.randn(2, 40, 32)]


def get_init_inputs():
    return []
