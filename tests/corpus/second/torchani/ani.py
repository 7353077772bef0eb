"""An ANI potential: radial and angular symmetry functions of the atoms' environments, a network
for each element."""

import torch
from torchani.arch import simple_ani


class Model(torch.nn.Module):
    def __init__(self, symbols):
        super().__init__()
        self.potential = simple_ani(
            symbols, lot="wb97x-631gd", ensemble_size=2, repulsion=False, self_energies="zero"
        )

    def forward(self, elements, coordinates):
        return self.potential((elements, coordinates)).energies


def get_inputs():
    elements = torch.tensor([[6, 6, 8, 1, 1, 1, 1, 1, 1]])
    return [elements, torch.randn(1, 9, 3) * 1.5]


def get_init_inputs():
    return [("H", "C", "N", "O")]
