"""NISQA: five scores of the quality of speech, from segments of mel spectrograms."""

import torch
from nisqa.NISQA_lib import NISQA_DIM
from torch import nn


class Model(nn.Module):
    def __init__(self, bands):
        super().__init__()
        self.model = NISQA_DIM(
            ms_n_mels=bands,
            td_sa_num_layers=2,
            td_sa_h=64,
            td_sa_dropout=0.1,
        )

    def forward(self, segments, lengths):
        return self.model(segments, lengths)


def get_inputs():
    return [torch.randn(2, 60, 1, 48, 15), torch.tensor([60, 45])]


def get_init_inputs():
    return [48]
