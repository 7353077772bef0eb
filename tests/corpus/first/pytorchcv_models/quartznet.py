"""pytorchcv's QuartzNet of speech: separable convolutions, repeated in blocks."""

import torch
from pytorchcv.models.quartznet import quartznet5x5_en_ls


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = quartznet5x5_en_ls(num_classes=29, from_audio=False)

    def forward(self, frames, lengths):
        return self.net(frames, lengths)


def get_inputs():
    return [torch.randn(2, 64, 120), torch.tensor([120, 120])]


def get_init_inputs():
    return []
