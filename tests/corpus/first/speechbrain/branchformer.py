"""speechbrain's BranchformerEncoder: attention beside a gated MLP with convolution."""

import torch
from speechbrain.lobes.models.transformer.Branchformer import BranchformerEncoder
from speechbrain.nnet.attention import RelPosEncXL


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.positions = RelPosEncXL(width)
        self.net = BranchformerEncoder(
            layers, width, 4, kernel_size=15, csgu_linear_units=2 * width
        )

    def forward(self, frames):
        return self.net(frames, pos_embs=self.positions(frames))[0]


def get_inputs():
    return [torch.randn(2, 50, 64)]


def get_init_inputs():
    return [64, 3]
