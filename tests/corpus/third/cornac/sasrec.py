"""SASRec of the cornac library: self-attention over a shopper's items, scores of all candidates."""

import torch
from cornac.models.sasrec.sasrec import SASRecModel


class Model(torch.nn.Module):
    def __init__(self, items, width, layers):
        super().__init__()
        self.net = SASRecModel(items, embedding_dim=width, maxlen=30, n_layers=layers, n_heads=4)

    def forward(self, users, history, candidates):
        return self.net(users, history, candidates)


def get_inputs():
    history = torch.randint(0, 3000, (16, 30))
    history[:6, :12] = 3000
    return [torch.arange(16), history, torch.randint(0, 3000, (116,))]


def get_init_inputs():
    return [3000, 64, 3]
