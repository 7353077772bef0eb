"""VarNet for MRI: cascades of data consistency in k-space and a DnCNN, mask given at run time."""

import deepinv
import torch


class Model(torch.nn.Module):
    def __init__(self, cascades, size):
        super().__init__()
        self.net = deepinv.models.VarNet(num_cascades=cascades, mode="varnet")
        self.physics = deepinv.physics.MRI(img_size=(1, size, size))

    def forward(self, kspace, mask):
        self.physics.update(mask=mask)
        return self.net(kspace * mask, self.physics)


def get_inputs():
    mask = (torch.rand(1, 1, 1, 96) < 0.3).float().expand(1, 2, 96, 96).clone()
    mask[..., 44:52] = 1
    return [torch.randn(1, 2, 96, 96), mask]


def get_init_inputs():
    return [6, 96]
