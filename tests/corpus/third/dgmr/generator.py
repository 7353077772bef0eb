"""Radar nowcasting GAN: four past frames and a latent to future frames by stacked ConvGRUs.

Conditioning stack, latent stack with attention (its noise is drawn in forward) and a sampler whose
layers all have spectral normalisation.
"""

import torch
from dgmr.common import ContextConditioningStack, LatentConditioningStack
from dgmr.generators import Generator, Sampler


class Model(torch.nn.Module):
    def __init__(self, steps, latent, context):
        super().__init__()
        self.net = Generator(
            ContextConditioningStack(input_channels=1, output_channels=context),
            LatentConditioningStack(shape=(8, 4, 4), output_channels=latent),
            Sampler(forecast_steps=steps, latent_channels=latent, context_channels=context),
        )

    def forward(self, frames):
        return self.net(frames)


def get_inputs():
    return [torch.rand(1, 4, 1, 128, 128)]


def get_init_inputs():
    return [6, 384, 192]
