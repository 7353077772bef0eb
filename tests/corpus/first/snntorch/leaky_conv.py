"""A convolutional network of snntorch's leaky neurons over 6 steps: spikes counted for ten
classes."""

import snntorch
import torch


class Model(torch.nn.Module):
    def __init__(self, decay, steps):
        super().__init__()
        self.steps = steps
        self.conv1, self.lif1 = torch.nn.Conv2d(1, 8, 5), snntorch.Leaky(decay)
        self.conv2, self.lif2 = torch.nn.Conv2d(8, 16, 5), snntorch.Leaky(decay, learn_beta=True)
        self.fc, self.lif3 = (
            torch.nn.Linear(16 * 4 * 4, 10),
            snntorch.Leaky(decay, reset_mechanism="zero"),
        )
        self.pool = torch.nn.MaxPool2d(2)

    def forward(self, images):
        first, second, third = (
            self.lif1.init_leaky(),
            self.lif2.init_leaky(),
            self.lif3.init_leaky(),
        )
        spikes, potentials = [], []
        for _ in range(self.steps):
            x, first = self.lif1(self.pool(self.conv1(images)), first)
            x, second = self.lif2(self.pool(self.conv2(x)), second)
            x, third = self.lif3(self.fc(x.flatten(1)), third)
            spikes.append(x)
            potentials.append(third)
        return torch.stack(spikes), torch.stack(potentials)


def get_inputs():
    return [torch.rand(4, 1, 28, 28)]


def get_init_inputs():
    return [0.9, 6]
