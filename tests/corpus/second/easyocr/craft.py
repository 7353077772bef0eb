"""CRAFT: a VGG with batch norm and U-shaped up-convolutions; maps of characters and of links
between them."""

import torch
from easyocr.craft import CRAFT


class Model(torch.nn.Module):
    def __init__(self, pretrained):
        super().__init__()
        self.net = CRAFT(pretrained=pretrained, freeze=False)

    def forward(self, page):
        return self.net(page)


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [False]
