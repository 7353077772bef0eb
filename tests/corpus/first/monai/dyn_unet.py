"""MONAI's DynUNet: nnU-Net's residual blocks with deep supervision."""

import torch
from monai.networks.nets import DynUNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = DynUNet(
            spatial_dims=3,
            in_channels=1,
            out_channels=2,
            kernel_size=[3, [3, 3, 1], 3, 3],
            strides=[1, [2, 2, 1], 2, 2],
            upsample_kernel_size=[[2, 2, 1], 2, 2],
            filters=[8, 16, 32, 48],
            res_block=True,
            deep_supervision=True,
            deep_supr_num=2,
        )

    def forward(self, volume):
        return self.net(volume)


def get_inputs():
    return [torch.randn(1, 1, 32, 32, 16)]


def get_init_inputs():
    return []
