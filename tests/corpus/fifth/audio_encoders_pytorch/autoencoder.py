"""An autoencoder of audio in patches, with residual blocks and a tanh bottleneck."""

import torch
from audio_encoders_pytorch import AutoEncoder1d, TanhBottleneck


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = AutoEncoder1d(
            in_channels=2,
            channels=channels,
            multipliers=[1, 2, 4, 4],
            factors=[4, 4, 2],
            num_blocks=[2, 2, 2],
            patch_size=4,
            bottleneck=TanhBottleneck(),
        )

    def forward(self, audio):
        latent = self.net.encode(audio)
        return latent, self.net.decode(latent)


def get_inputs():
    return [torch.randn(2, 2, 8192)]


def get_init_inputs():
    return [32]
