"""SpliceAI: dilated residual convolutions along DNA; donor, acceptor or neither at each base."""

import torch
from spliceai_pytorch import SpliceAI


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = SpliceAI.from_preconfigured("2k")

    def forward(self, bases):
        return self.model(bases)


def get_inputs():
    bases = torch.randint(0, 4, (1, 5000 + 2000))
    return [torch.nn.functional.one_hot(bases, 4).float().transpose(1, 2)]


def get_init_inputs():
    return []
