"""ProteinBERT: a local track of residues and a global track of annotations."""

import torch
from proteinbert_pytorch.proteinbert_pytorch import ProteinBERT
from torch import nn


class Model(nn.Module):
    def __init__(self, vocab, annotations):
        super().__init__()
        self.model = ProteinBERT(vocab, annotations, d_local=64, d_global=128)

    def forward(self, residues, annotations):
        return self.model(residues, annotations)


def get_inputs():
    return [torch.randint(0, 26, (2, 100)), (torch.rand(2, 500) > 0.9).float()]


def get_init_inputs():
    return [26, 500]
