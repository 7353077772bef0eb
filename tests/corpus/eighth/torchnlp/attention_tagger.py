"""Sentence model of pytorch-nlp's attention, CNN encoder and locked dropout."""

import torch
from torch import nn
from torchnlp.nn import Attention, CNNEncoder, LockedDropout


class Model(nn.Module):
    def __init__(self, vocabulary, dim):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.drop = LockedDropout(0.3)
        self.rnn = nn.GRU(dim, dim // 2, bidirectional=True, batch_first=True)
        self.attend = Attention(dim)
        self.cnn = CNNEncoder(dim, num_filters=64, ngram_filter_sizes=(2, 3, 4))
        self.head = nn.Linear(192, 6)

    def forward(self, tokens):
        states, _ = self.rnn(self.drop(self.embed(tokens)))
        states = states.contiguous()
        mixed, weights = self.attend(states, states)
        return self.head(self.cnn(mixed, torch.ones_like(tokens, dtype=torch.float))), weights


def get_inputs():
    return [torch.randint(0, 2000, (3, 40))]


def get_init_inputs():
    return [2000, 128]
