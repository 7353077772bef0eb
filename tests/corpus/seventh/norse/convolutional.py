"""A spiking convolutional network of Norse on MNIST: an image as constant currents, LIF neurons, a
leaky integrator whose highest voltage decides."""

import torch
from norse.torch import ConstantCurrentLIFEncoder
from norse.torch.models.conv import ConvNet


class Model(torch.nn.Module):
    def __init__(self, steps, side):
        super().__init__()
        self.encode = ConstantCurrentLIFEncoder(steps)
        self.model = ConvNet(num_channels=1, feature_size=side, method="super")

    def forward(self, image):
        voltages = self.model(self.encode(image))
        return torch.log_softmax(voltages.amax(dim=0), dim=1)


def get_inputs():
    return [torch.rand(4, 1, 28, 28)]


def get_init_inputs():
    return [16, 28]
