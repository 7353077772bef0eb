"""End-to-end variational network for accelerated MRI: sensitivity maps from the centre of k-space,
cascades of soft data consistency and normalized U-Nets, root sum of squares over the coils."""

import torch
from fastmri.models import VarNet


class Model(torch.nn.Module):
    def __init__(self, cascades, channels):
        super().__init__()
        self.net = VarNet(
            num_cascades=cascades, sens_chans=4, sens_pools=3, chans=channels, pools=3
        )

    def forward(self, kspace, mask):
        return self.net(kspace * mask, mask)


def get_inputs():
    mask = torch.zeros(1, 1, 1, 80, 1).bool()
    mask[..., ::4, :] = True
    mask[..., 34:46, :] = True
    return [torch.randn(1, 6, 96, 80, 2), mask]


def get_init_inputs():
    return [4, 12]
