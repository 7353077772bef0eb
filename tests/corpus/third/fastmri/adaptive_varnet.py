"""Adaptive variational network: between the cascades a policy decides which columns of k-space to
measure next, from the picture so far, and thins them to its budget."""

import torch
from fastmri.models import AdaptiveVarNet


class Model(torch.nn.Module):
    def __init__(self, width, budget):
        super().__init__()
        self.net = AdaptiveVarNet(
            budget=budget,
            num_cascades=3,
            sens_chans=4,
            sens_pools=3,
            chans=8,
            pools=3,
            crop_size=(width, width),
            num_actions=width,
            num_sense_lines=8,
            loupe_mask=True,
        )

    def forward(self, kspace, masked, mask):
        return self.net(kspace, masked, mask)


def get_inputs():
    kspace = torch.randn(1, 4, 64, 64, 2)
    mask = torch.zeros(1, 1, 1, 64, 1)
    mask[..., 28:36, :] = 1
    return [kspace, kspace * mask, mask]


def get_init_inputs():
    return [64, 12]
