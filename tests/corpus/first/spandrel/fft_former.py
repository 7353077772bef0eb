"""spandrel's FFTformer: attention and gating in the frequency domain of patches."""

import torch
from spandrel.architectures.FFTformer import FFTformer


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = FFTformer(dim=16, num_blocks=[2, 2, 2], num_refinement_blocks=2)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return []
