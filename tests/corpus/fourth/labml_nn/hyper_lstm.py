"""HyperLSTM: a small LSTM makes the scales of the large LSTM's weights at each step."""

import torch
from labml_nn.hypernetworks.hyper_lstm import HyperLSTM


class Model(torch.nn.Module):
    def __init__(self, tokens, width, hidden, hyper, features, layers):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, width)
        self.net = HyperLSTM(width, hidden, hyper, features, layers)
        self.head = torch.nn.Linear(hidden, tokens)
        for parameter in self.parameters():
            if parameter.abs().max() < 1e-4:  # starts as (almost) zero, and would hide its branch
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, tokens):
        x, state = self.net(self.embedding(tokens))
        return self.head(x), state


def get_inputs():
    return [torch.randint(0, 96, (24, 4))]


def get_init_inputs():
    return [96, 128, 256, 32, 16, 2]
