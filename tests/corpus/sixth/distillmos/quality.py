"""DistillMOS: the quality of speech from its compressed complex spectrogram, by a convolutional
network and a transformer with attention pooling."""

import torch
from distillmos import ConvTransformerSQAModel


class Model(torch.nn.Module):
    def __init__(self, segmenting):
        super().__init__()
        self.net = ConvTransformerSQAModel(load_weights=False, segmenting_in_forward=segmenting)

    def forward(self, wave):
        return self.net(wave)


def get_inputs():
    return [torch.randn(1, 40000) * 0.1]


def get_init_inputs():
    return [True]
