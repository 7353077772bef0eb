"""ProteinBERT: local and global tracks over a protein sequence and its annotations."""

import torch
from protein_bert_pytorch import ProteinBERT
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = ProteinBERT(
            num_tokens=21,
            num_annotation=200,
            dim=dim,
            dim_global=32,
            depth=depth,
            num_global_tokens=2,
            local_to_global_attn=True,
            local_self_attn=True,
            glu_conv=True,
        )

    def forward(self, seq, annotation, mask):
        return self.model(seq, annotation, mask=mask)


def get_inputs():
    return [
        torch.randint(0, 21, (2, 48)),
        torch.rand(2, 200),
        torch.arange(48) < torch.tensor([[48], [40]]),
    ]


def get_init_inputs():
    return [64, 2]
