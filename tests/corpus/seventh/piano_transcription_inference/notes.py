"""High-resolution piano transcription: log-mel frames, four convolutional recurrent branches that
regress onsets, offsets, frames and velocities of 88 keys."""

import torch
from piano_transcription_inference.models import Regress_onset_offset_frame_velocity_CRNN


class Model(torch.nn.Module):
    def __init__(self, rate, keys):
        super().__init__()
        self.model = Regress_onset_offset_frame_velocity_CRNN(
            frames_per_second=rate, classes_num=keys
        )

    def forward(self, audio):
        return self.model(audio)


def get_inputs():
    return [torch.randn(1, 16000) * 0.1]


def get_init_inputs():
    return [100, 88]
