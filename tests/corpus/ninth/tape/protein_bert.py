"""Protein BERT of tape that predicts the secondary structure of residues."""

import torch
from tape.models.modeling_bert import (
    ProteinBertConfig,
    ProteinBertForSequenceToSequenceClassification,
)
from torch import nn


class Model(nn.Module):
    def __init__(self, width, layers, labels):
        super().__init__()
        config = ProteinBertConfig(
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=8,
            intermediate_size=4 * width,
            num_labels=labels,
        )
        self.model = ProteinBertForSequenceToSequenceClassification(config)

    def forward(self, residues, mask):
        return self.model(residues, input_mask=mask)[0]


def get_inputs():
    mask = torch.ones(2, 100, dtype=torch.long)
    mask[1, 80:] = 0
    return [torch.randint(1, 30, (2, 100)), mask]


def get_init_inputs():
    return [256, 4, 3]
