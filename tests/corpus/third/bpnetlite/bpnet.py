"""BPNet: dilated residual convolutions over DNA, profile logits per strand and total counts."""

import torch
from bpnetlite.bpnet import BPNet


class Model(torch.nn.Module):
    def __init__(self, filters, layers):
        super().__init__()
        self.net = BPNet(n_filters=filters, n_layers=layers, n_outputs=2, n_control_tracks=2)

    def forward(self, sequence, control):
        return self.net(sequence, control)


def get_inputs():
    bases = torch.randint(0, 4, (4, 2114))
    sequence = torch.nn.functional.one_hot(bases, 4).float().transpose(1, 2)
    return [sequence, torch.rand(4, 2, 2114) * 3]


def get_init_inputs():
    return [64, 8]
