"""A SEW-ResNet-18 of spiking neurons: 4 time steps of one image, additions between the blocks."""

import torch
from spikingjelly.activation_based import functional, neuron, surrogate
from spikingjelly.activation_based.model.sew_resnet import sew_resnet18


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = sew_resnet18(
            cnf="ADD",
            spiking_neuron=neuron.IFNode,
            surrogate_function=surrogate.ATan(),
            detach_reset=True,
            num_classes=classes,
        )
        functional.set_step_mode(self.net, "m")

    def forward(self, image):
        functional.reset_net(self.net)
        return self.net(image.unsqueeze(0).repeat(4, 1, 1, 1, 1)).mean(0)


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [10]
