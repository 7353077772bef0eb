"""Three S5 blocks, bidirectional: a diagonal complex state space run as an associative scan."""

import torch
from s5 import S5Block


class Model(torch.nn.Module):
    def __init__(self, dim, state, layers):
        super().__init__()
        self.embed = torch.nn.Linear(8, dim)
        self.blocks = torch.nn.ModuleList(S5Block(dim, state, bidir=True) for _ in range(layers))
        self.head = torch.nn.Linear(dim, 10)

    def forward(self, sequence):
        x = self.embed(sequence)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


def get_inputs():
    return [torch.randn(2, 64, 8)]


def get_init_inputs():
    return [32, 32, 3]
