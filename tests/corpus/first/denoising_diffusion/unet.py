"""denoising-diffusion-pytorch's UNet: linear and full attention, learned sinusoids."""

import torch
from denoising_diffusion_pytorch import Unet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Unet(
            dim=16, dim_mults=(1, 2, 4), learned_sinusoidal_cond=True, self_condition=True
        )

    def forward(self, image, time):
        return self.net(image, time)


def get_inputs():
    return [torch.randn(2, 3, 32, 32), torch.rand(2)]


def get_init_inputs():
    return []
