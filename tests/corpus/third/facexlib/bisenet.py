"""BiSeNet for parsing faces: a ResNet-18 with attention refinement, a fusion of two paths and
three outputs at the size of the picture."""

import torch
from facexlib.parsing.bisenet import BiSeNet


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = BiSeNet(classes)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return [19]
