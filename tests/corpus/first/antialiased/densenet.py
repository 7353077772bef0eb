"""antialiased-cnns' DenseNet-121: dense blocks with blurred pools between."""

import antialiased_cnns
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = antialiased_cnns.densenet121(filter_size=3)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
