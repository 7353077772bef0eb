"""Deep Ritz network and a PINN with Fourier harmonics: the residual of a Poisson equation."""

import torch
import torchphysics as tp


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.space = tp.spaces.R2("x")
        self.net = tp.models.Parallel(
            tp.models.DeepRitzNet(self.space, tp.spaces.R1("u"), width, depth),
            tp.models.Harmonic_FCN(
                self.space, tp.spaces.R1("v"), max_frequenz=4, hidden=(width, width, width)
            ),
        )

    def forward(self, x):
        with torch.enable_grad():
            points = tp.spaces.Points(x.requires_grad_(), self.space)
            output = self.net(points)
            u, v = output.as_tensor.unbind(-1)
            return u, tp.utils.laplacian(v[:, None], x) + torch.sin(x).sum(-1, keepdim=True)


def get_inputs():
    return [torch.rand(256, 2)]


def get_init_inputs():
    return [64, 3]
