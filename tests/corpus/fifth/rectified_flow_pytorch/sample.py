"""Rectified flow: eight midpoint steps from given noise with a U-Net, and the flow's loss."""

import torch
from rectified_flow_pytorch import RectifiedFlow, Unet


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = RectifiedFlow(Unet(dim=dim, dim_mults=(1, 2, 4)), data_shape=(3, 32, 32))

    def forward(self, noise, images):
        sample = self.net.sample(batch_size=len(noise), steps=8, noise=noise)
        times = torch.linspace(0.1, 0.9, len(images))
        return sample, self.net(images, noise=noise, times=times)


def get_inputs():
    return [torch.randn(1, 3, 32, 32), torch.rand(1, 3, 32, 32)]


def get_init_inputs():
    return [32]
