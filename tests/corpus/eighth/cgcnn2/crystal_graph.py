"""Crystal graph convolutional network from cgcnn2."""

import torch
from cgcnn2.model import CrystalGraphConvNet
from torch import nn


class Model(nn.Module):
    def __init__(self, atom, bond, sizes):
        super().__init__()
        self.sizes = sizes
        self.model = CrystalGraphConvNet(
            atom, bond, atom_fea_len=64, n_conv=4, h_fea_len=128, n_h=2
        )

    def forward(self, atoms, bonds, neighbours):
        crystals = list(torch.arange(sum(self.sizes)).split(self.sizes))
        return self.model(atoms, bonds, neighbours, crystals)


def get_inputs():
    return [torch.rand(40, 92), torch.rand(40, 12, 41), torch.randint(0, 40, (40, 12))]


def get_init_inputs():
    return [92, 41, [10, 14, 16]]
