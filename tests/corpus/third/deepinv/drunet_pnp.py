"""Plug-and-play deblurring: half-quadratic splitting whose prior is the DRUNet denoiser.

Each of four iterations solves the blur's least squares in the frequency domain and denoises with a
falling noise level.
"""

import deepinv
import torch


class Model(torch.nn.Module):
    def __init__(self, widths, blocks):
        super().__init__()
        self.denoiser = deepinv.models.DRUNet(
            in_channels=3, out_channels=3, nc=widths, nb=blocks, pretrained=None
        )
        self.physics = deepinv.physics.BlurFFT(
            img_size=(3, 96, 96), filter=deepinv.physics.blur.gaussian_blur(sigma=(2, 2))
        )
        self.solver = deepinv.optim.optim_builder(
            iteration="HQS",
            prior=deepinv.optim.PnP(denoiser=self.denoiser),
            data_fidelity=deepinv.optim.L2(),
            max_iter=4,
            early_stop=False,
            params_algo={"stepsize": 1.0, "g_param": [0.2, 0.1, 0.06, 0.03], "lambda": 1.0},
        )

    def forward(self, blurred):
        return self.solver(blurred, self.physics)


def get_inputs():
    return [torch.rand(1, 3, 96, 96)]


def get_init_inputs():
    return [[32, 64, 128, 256], 2]
