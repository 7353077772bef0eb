"""Video diffusion's 3-D U-Net: spatial linear attention, temporal one with a position bias."""

import torch
from video_diffusion_pytorch import Unet3D


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = Unet3D(dim=dim, cond_dim=64, dim_mults=(1, 2, 4))

    def forward(self, video, time, cond):
        return self.net.forward_with_cond_scale(video, time, cond=cond, cond_scale=2.0)


def get_inputs():
    return [torch.randn(1, 3, 5, 32, 32), torch.tensor([300]), torch.randn(1, 64)]


def get_init_inputs():
    return [48]
