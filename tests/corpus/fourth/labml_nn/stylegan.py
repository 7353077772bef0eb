"""StyleGAN 2: mapping network with equalized learning rates, modulated and demodulated
convolutions, noise per block, skip to RGB with smooth upsampling; and the discriminator."""

import torch
from labml_nn.gan.stylegan import Discriminator, Generator, MappingNetwork


class Model(torch.nn.Module):
    def __init__(self, log_size, latent, mapping_layers, features):
        super().__init__()
        self.mapping = MappingNetwork(latent, mapping_layers)
        self.generator = Generator(log_size, latent, features, 256)
        self.discriminator = Discriminator(log_size, features, 256)
        for parameter in self.parameters():
            if parameter.abs().max() < 1e-4:  # starts as (almost) zero, and would hide its branch
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, latent, *noise):
        w = self.mapping(latent)
        blocks = self.generator.n_blocks
        w = w[None].expand(blocks, -1, -1)
        pairs = [(None, noise[0])]
        pairs += [(noise[2 * k - 1], noise[2 * k]) for k in range(1, blocks)]
        image = self.generator(w, pairs)
        return image, self.discriminator(image)


def get_inputs():
    noise = [torch.randn(4, 1, 4, 4)]
    for level in (8, 16, 32, 64):
        noise += [torch.randn(4, 1, level, level), torch.randn(4, 1, level, level)]
    return [torch.randn(4, 256), *noise]


def get_init_inputs():
    return [6, 256, 8, 32]
