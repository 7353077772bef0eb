"""ByteNet masked language model of proteins from sequence_models, with a mask for padding."""

import torch
from sequence_models.convolutional import ByteNetLM
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, width, layers):
        super().__init__()
        self.model = ByteNetLM(
            tokens, 8, width, layers, kernel_size=5, r=64, padding_idx=tokens - 1, final_ln=True
        )

    def forward(self, residues, mask):
        return self.model(residues, input_mask=mask)


def get_inputs():
    residues = torch.randint(0, 30, (2, 160))
    mask = torch.ones(2, 160, 1)
    mask[1, 120:] = 0
    return [residues, mask]


def get_init_inputs():
    return [31, 256, 14]
