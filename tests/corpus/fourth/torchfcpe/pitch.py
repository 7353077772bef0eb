"""FCPE: the fundamental frequency of a voice from a mel spectrogram, by a stack of conformer blocks
with fast attention; cents decoded about the loudest bin."""

import torch
from torchfcpe.models import CFNaiveMelPE


class Model(torch.nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.net = CFNaiveMelPE(
            input_channels=128,
            out_dims=360,
            hidden_dims=hidden,
            n_layers=layers,
            n_heads=8,
            use_fa_norm=True,
            use_harmonic_emb=False,
        )

    def forward(self, mel):
        return self.net.infer(mel, decoder="local_argmax"), self.net(mel)


def get_inputs():
    return [torch.randn(2, 100, 128)]


def get_init_inputs():
    return [256, 6]
