"""openai-whisper's Whisper: an encoder of mel frames, a decoder of text with cross attention."""

import torch
from whisper.model import ModelDimensions, Whisper


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = Whisper(ModelDimensions(80, 200, width, 4, layers, 1000, 64, width, 4, layers))

    def forward(self, mel, tokens):
        return self.net(mel, tokens)


def get_inputs():
    return [torch.randn(1, 80, 400), torch.randint(0, 1000, (1, 24))]


def get_init_inputs():
    return [128, 3]
