"""Image transformer denoiser with axial rotary positions and query-key norms, and the package's
DPM-Solver++ (2M) over five Karras sigmas."""

import os

import torch

os.environ["K_DIFFUSION_USE_COMPILE"] = "0"  # its own switch: no torch.compile

from k_diffusion.layers import Denoiser
from k_diffusion.models import ImageTransformerDenoiserModelV1
from k_diffusion.sampling import get_sigmas_karras, sample_dpmpp_2m


class Model(torch.nn.Module):
    def __init__(self, layers, width, steps):
        super().__init__()
        inner = ImageTransformerDenoiserModelV1(
            layers, width, width * 3, 3, 3, (4, 4), num_classes=10, sigma_data=0.5
        )
        for parameter in inner.parameters():
            if not parameter.any():  # starts as zero, and would hide all that lies before it
                torch.nn.init.normal_(parameter, std=0.02)
        self.net = Denoiser(inner, sigma_data=0.5)
        self.steps = steps

    def forward(self, noise, label):
        sigmas = get_sigmas_karras(self.steps, 0.02, 80.0, device=noise.device)
        return sample_dpmpp_2m(
            self.net, noise * sigmas[0], sigmas, extra_args={"class_cond": label}, disable=True
        )


def get_inputs():
    return [torch.randn(2, 3, 32, 32), torch.randint(10, (2,))]


def get_init_inputs():
    return [6, 256, 5]
