"""BERT with both of its pretraining heads, from bert_pytorch."""

import torch
from bert_pytorch.model import BERT, BERTLM
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary, hidden, layers, heads):
        super().__init__()
        self.model = BERTLM(BERT(vocabulary, hidden, layers, heads), vocabulary)

    def forward(self, tokens, segments):
        return self.model(tokens, segments)


def get_inputs():
    tokens = torch.randint(5, 2000, (2, 64))
    tokens[1, 50:] = 0
    segments = torch.ones(2, 64, dtype=torch.long)
    segments[:, 30:] = 2
    segments[1, 50:] = 0
    return [tokens, segments]


def get_init_inputs():
    return [2000, 256, 6, 8]
