"""Bayesian LSTM and linear layers of blitz-bayesian-pytorch: mean and spread of several draws."""

import torch
from blitz.modules import BayesianLinear, BayesianLSTM
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = BayesianLSTM(features, hidden)
        self.head = BayesianLinear(hidden, 1)

    def forward(self, series):
        draws = torch.stack([self.head(self.rnn(series)[0][:, -1]) for _ in range(3)])
        return draws.mean(0), draws.std(0)


def get_inputs():
    return [torch.randn(8, 24, 6)]


def get_init_inputs():
    return [6, 64]
