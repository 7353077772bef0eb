"""A neural PCFG on torch-struct: embeddings of the symbols give the rules' probabilities, and the
inside algorithm the likelihood of sentences and the marginals of the spans."""

import torch
import torch_struct
from torch import nn


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())

    def forward(self, x):
        return x + self.net(x)


class Model(nn.Module):
    def __init__(self, words, terminals, symbols, dim):
        super().__init__()
        self.terminals, self.symbols = terminals, symbols
        self.terminal = nn.Parameter(torch.randn(terminals, dim))
        self.symbol = nn.Parameter(torch.randn(symbols, dim))
        self.start = nn.Parameter(torch.randn(1, dim))
        self.emit = nn.Sequential(
            nn.Linear(dim, dim), Residual(dim), Residual(dim), nn.Linear(dim, words)
        )
        self.root = nn.Sequential(
            nn.Linear(dim, dim), Residual(dim), Residual(dim), nn.Linear(dim, symbols)
        )
        self.rule = nn.Linear(dim, (symbols + terminals) ** 2)

    def forward(self, sentences):
        batch, _length = sentences.shape
        emit = self.emit(self.terminal).log_softmax(dim=-1).t()[sentences]
        both = self.symbols + self.terminals
        rules = self.rule(self.symbol).log_softmax(dim=-1).view(1, self.symbols, both, both)
        roots = self.root(self.start).log_softmax(dim=-1).expand(batch, -1)
        crf = torch_struct.SentCFG((emit, rules.expand(batch, -1, -1, -1), roots))
        return crf.partition, *crf.marginals


def get_inputs():
    return [torch.randint(0, 300, (2, 8))]


def get_init_inputs():
    return [300, 8, 5, 64]
