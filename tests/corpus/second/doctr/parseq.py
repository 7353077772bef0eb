"""docTR's PARSeq: reads a word's picture character after character, then refines it with a cloze
mask."""

import torch
from doctr.models.recognition.parseq.pytorch import parseq


class Model(torch.nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.net = parseq(pretrained=False, vocab=vocabulary, max_length=length)

    def forward(self, image):
        return self.net(image, return_model_output=True)["out_map"]


def get_inputs():
    return [torch.rand(1, 3, 32, 128)]


def get_init_inputs():
    return ["abcdefghijklmnopqrstuvwxyz", 8]
