"""EasyOCR's first recognizer: a ResNet over a line's picture, two bidirectional LSTMs, logits
for CTC."""

import torch
from easyocr.model.model import Model as Recognizer


class Model(torch.nn.Module):
    def __init__(self, channels, hidden, classes):
        super().__init__()
        self.net = Recognizer(1, channels, hidden, classes)

    def forward(self, line, text):
        return self.net(line, text)


def get_inputs():
    return [torch.randn(1, 1, 32, 160), torch.zeros(1, 10).long()]


def get_init_inputs():
    return [64, 64, 97]
