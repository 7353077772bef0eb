"""TRACER: a salient object tracer with EfficientNet, frequency edges and attention decoders."""

import torch
from carvekit.ml.arch.tracerb7.efficientnet import EfficientEncoderB7
from carvekit.ml.arch.tracerb7.tracer import TracerDecoder


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = TracerDecoder(encoder=EfficientEncoderB7())

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(1, 3, 192, 192)]


def get_init_inputs():
    return []
