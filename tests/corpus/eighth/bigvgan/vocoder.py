"""BigVGAN's vocoder with snake activations from the package bigvgan."""

import torch
from bigvgan import AttrDict, BigVGAN
from torch import nn


class Model(nn.Module):
    def __init__(self, mels, channels):
        super().__init__()
        self.model = BigVGAN(
            AttrDict(
                {
                    "num_mels": mels,
                    "upsample_initial_channel": channels,
                    "upsample_rates": [4, 4, 2, 2],
                    "upsample_kernel_sizes": [8, 8, 4, 4],
                    "resblock": "1",
                    "resblock_kernel_sizes": [3, 7],
                    "resblock_dilation_sizes": [[1, 3, 5], [1, 3, 5]],
                    "activation": "snakebeta",
                    "snake_logscale": True,
                    "use_tanh_at_final": False,
                    "use_bias_at_final": False,
                }
            )
        )

    def forward(self, mel):
        return self.model(mel)


def get_inputs():
    return [torch.randn(1, 80, 32)]


def get_init_inputs():
    return [80, 128]
