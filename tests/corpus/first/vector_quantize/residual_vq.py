"""vector-quantize-pytorch's residual quantiser: four codebooks, each on what the last left."""

import torch
from vector_quantize_pytorch import ResidualVQ


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = ResidualVQ(dim=32, codebook_size=64, num_quantizers=4, use_cosine_sim=True)

    def forward(self, frames):
        return self.net(frames)


def get_inputs():
    return [torch.randn(2, 50, 32)]


def get_init_inputs():
    return []
