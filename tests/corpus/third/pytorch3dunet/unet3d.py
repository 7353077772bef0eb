"""3D U-Net: double convolutions with group norm, max pooling and nearest upsampling with
concatenated skips; probabilities and logits."""

import torch
from pytorch3dunet.unet3d.model import UNet3D


class Model(torch.nn.Module):
    def __init__(self, inside, outside, maps):
        super().__init__()
        self.net = UNet3D(inside, outside, final_sigmoid=False, f_maps=maps, layer_order="gcr")

    def forward(self, volume):
        return self.net(volume, return_logits=True)


def get_inputs():
    return [torch.randn(1, 2, 24, 48, 48)]


def get_init_inputs():
    return [2, 3, 16]
