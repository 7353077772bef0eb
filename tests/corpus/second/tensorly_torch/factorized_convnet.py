"""A small network of convolutions in CP, Tucker and tensor train form with a tensor regression
at its end."""

import tltorch
import torch


class Model(torch.nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        layers, size = [], 3
        for factorization, width in zip(("cp", "tucker", "tt"), channels, strict=True):
            conv = tltorch.FactorizedConv(
                size, width, (3, 3), order=2, padding=1, factorization=factorization, rank=0.5
            )
            conv.weight.normal_(0, 0.05)
            layers += [conv, torch.nn.BatchNorm2d(width), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
            size = width
        self.features = torch.nn.Sequential(*layers)
        self.head = tltorch.TRL(
            (size, 4, 4), (classes,), bias=True, factorization="tucker", rank=0.5
        )
        torch.nn.init.zeros_(self.head.bias)

    def forward(self, image):
        return self.head(self.features(image))


def get_inputs():
    return [torch.randn(4, 3, 32, 32)]


def get_init_inputs():
    return [[16, 32, 32], 10]
