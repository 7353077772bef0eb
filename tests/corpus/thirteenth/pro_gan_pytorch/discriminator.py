"""Progressive GAN discriminator with equalised learning rates and minibatch deviation."""

import torch
from pro_gan_pytorch.networks import Discriminator
from torch import nn


class Model(nn.Module):
    def __init__(self, depth, latent):
        super().__init__()
        self.model, self.depth = (
            Discriminator(depth=depth, num_channels=3, latent_size=latent),
            depth,
        )

    def forward(self, img):
        return self.model(img, self.depth, 0.5)


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return [6, 256]
