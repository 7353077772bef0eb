"""A non-uniform FFT: an image with coil sensitivities to radial samples of its k-space, and the
adjoint back."""

import torch
import torchkbnufft


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.forward_operator = torchkbnufft.KbNufft(im_size=(size, size))
        self.adjoint = torchkbnufft.KbNufftAdjoint(im_size=(size, size))

    def forward(self, image, trajectory, sensitivities):
        samples = self.forward_operator(image, trajectory, smaps=sensitivities)
        return self.adjoint(samples, trajectory, smaps=sensitivities)


def get_inputs():
    angle = torch.linspace(0, 3.14159, 20)[:, None]
    radius = torch.linspace(-3.14159, 3.14159, 64)[None, :]
    trajectory = torch.stack(
        [(radius * angle.cos()).reshape(-1), (radius * angle.sin()).reshape(-1)]
    )
    return [
        torch.randn(1, 1, 32, 32) + 0j,
        trajectory,
        torch.randn(1, 4, 32, 32) + 1j * torch.randn(1, 4, 32, 32),
    ]


def get_init_inputs():
    return [32]
