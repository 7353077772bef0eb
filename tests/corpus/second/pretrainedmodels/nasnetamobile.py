"""NASNet-A mobile: two hidden states flow through cells of separable convolutions."""

import torch
from pretrainedmodels.models.nasnet_mobile import NASNetAMobile


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = NASNetAMobile(num_classes=classes)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 224, 224)]


def get_init_inputs():
    return [100]
