"""Protein ResNet of tape, a masked language model."""

import torch
from tape.models.modeling_resnet import ProteinResNetConfig, ProteinResNetForMaskedLM
from torch import nn


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = ProteinResNetConfig(hidden_size=width, num_hidden_layers=layers)
        self.model = ProteinResNetForMaskedLM(config)

    def forward(self, residues, mask):
        return self.model(residues, input_mask=mask)[0]


def get_inputs():
    mask = torch.ones(2, 128, dtype=torch.long)
    mask[0, 100:] = 0
    return [torch.randint(1, 30, (2, 128)), mask]


def get_init_inputs():
    return [256, 8]
