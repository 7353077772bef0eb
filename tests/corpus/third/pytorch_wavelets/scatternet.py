"""A scattering network of second order on dual-tree wavelets, then a small head; and a discrete
wavelet packet of the same picture."""

import torch
from pytorch_wavelets import DWTForward, DWTInverse, ScatLayer


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.scatter = torch.nn.Sequential(ScatLayer(), ScatLayer())
        self.head = torch.nn.Sequential(
            torch.nn.BatchNorm2d(147), torch.nn.Conv2d(147, 128, 3), torch.nn.ReLU()
        )
        self.classify = torch.nn.Linear(128, classes)
        self.packet = DWTForward(J=3, wave="db4", mode="symmetric")
        self.inverse = DWTInverse(wave="db4", mode="symmetric")

    def forward(self, image):
        features = self.head(self.scatter(image)).mean((2, 3))
        low, high = self.packet(image)
        return self.classify(features), self.inverse((low, [x * 0.5 for x in high]))


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return [10]
