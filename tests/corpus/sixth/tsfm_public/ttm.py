"""TinyTimeMixer of granite-tsfm: patches of several channels are mixed to a forecast."""

import torch
from tsfm_public.models.tinytimemixer import (
    TinyTimeMixerConfig,
    TinyTimeMixerForPrediction,
)


class Model(torch.nn.Module):
    def __init__(self, context, horizon, channels):
        super().__init__()
        self.net = TinyTimeMixerForPrediction(
            TinyTimeMixerConfig(
                context_length=context,
                prediction_length=horizon,
                patch_length=16,
                patch_stride=16,
                num_input_channels=channels,
                d_model=64,
                num_layers=3,
                adaptive_patching_levels=2,
                decoder_num_layers=2,
                decoder_d_model=32,
                decoder_mode="mix_channel",
            )
        )

    def forward(self, past):
        return self.net(past_values=past, return_loss=False).prediction_outputs


def get_inputs():
    return [torch.randn(4, 256, 5).cumsum(dim=1)]


def get_init_inputs():
    return [256, 48, 5]
