"""NanoCodec: HiFi-GAN encoder, grouped finite scalar quantiser, causal HiFi-GAN decoder."""

import torch
from nanocodec_torch.models.audio_codec import AudioCodecModel
from torch import nn


class Model(nn.Module):
    def __init__(self, encoder_channels, decoder_channels):
        super().__init__()
        self.model = AudioCodecModel(
            encoder_config={
                "down_sample_rates": [2, 3, 6, 7, 7],
                "encoded_dim": 16,
                "base_channels": encoder_channels,
                "activation": "lrelu",
                "pad_mode": "replicate",
            },
            decoder_config={
                "up_sample_rates": [7, 7, 6, 3, 2],
                "input_dim": 16,
                "base_channels": decoder_channels,
                "activation": "half_snake",
                "output_activation": "clamp",
                "pad_mode": "zeros",
                "n_groups_equal_to_out_channels": True,
            },
        )

    def forward(self, audio):
        return self.model(audio)


def get_inputs():
    return [0.3 * torch.randn(1, 7056)]


def get_init_inputs():
    return [24, 288]
