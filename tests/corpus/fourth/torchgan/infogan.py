"""InfoGAN of torchgan: noise, a class and continuous codes become a picture, and the discriminator
finds the codes again."""

import torch
from torchgan.models import InfoGANDiscriminator, InfoGANGenerator


class Model(torch.nn.Module):
    def __init__(self, noise, classes, codes):
        super().__init__()
        self.generator = InfoGANGenerator(
            dim_dis=classes, dim_cont=codes, encoding_dims=noise, out_size=32, step_channels=32
        )
        self.discriminator = InfoGANDiscriminator(
            dim_dis=classes, dim_cont=codes, in_size=32, step_channels=32
        )

    def forward(self, noise, kind, code):
        image = self.generator(noise, kind, code)
        real, found, normal = self.discriminator(image, return_latents=True)
        return image, real, found, normal.mean, normal.stddev


def get_inputs():
    kind = torch.nn.functional.one_hot(torch.randint(0, 10, (4,)), 10).float()
    return [torch.randn(4, 64), kind, torch.randn(4, 2)]


def get_init_inputs():
    return [64, 10, 2]
