"""antialiased-cnns' ResNet-18: a blur before every stride."""

import antialiased_cnns
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = antialiased_cnns.resnet18(filter_size=4)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
