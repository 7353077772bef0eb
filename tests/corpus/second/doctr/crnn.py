"""docTR's CRNN: a VGG over a word's picture, a bidirectional LSTM of two layers, logits for CTC."""

import torch
from doctr.models.recognition.crnn.pytorch import crnn_vgg16_bn


class Model(torch.nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.net = crnn_vgg16_bn(pretrained=False, pretrained_backbone=False, vocab=vocabulary)

    def forward(self, image):
        return self.net(image, return_model_output=True)["out_map"]


def get_inputs():
    return [torch.rand(1, 3, 32, 128)]


def get_init_inputs():
    return ["abcdefghijklmnopqrstuvwxyz0123456789"]
