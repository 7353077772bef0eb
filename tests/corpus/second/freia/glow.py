"""A small Glow: all-in-one blocks of affine couplings on squeezed images, then on vectors, with
a log determinant."""

import FrEIA.framework
import FrEIA.modules
import torch


def convolutions(inputs, outputs):
    return torch.nn.Sequential(
        torch.nn.Conv2d(inputs, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Conv2d(32, outputs, 3, padding=1),
    )


def dense(inputs, outputs):
    return torch.nn.Sequential(
        torch.nn.Linear(inputs, 64), torch.nn.ReLU(), torch.nn.Linear(64, outputs)
    )


class Model(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        flow = FrEIA.framework.SequenceINN(3, 16, 16)
        for _ in range(2):
            flow.append(FrEIA.modules.IRevNetDownsampling)
            for _ in range(blocks):
                flow.append(
                    FrEIA.modules.AllInOneBlock, subnet_constructor=convolutions, permute_soft=True
                )
        flow.append(FrEIA.modules.Flatten)
        flow.append(FrEIA.modules.GLOWCouplingBlock, subnet_constructor=dense, clamp=1.2)
        self.flow = flow

    def forward(self, image):
        return self.flow(image)


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return [2]
