"""GRU4Rec: one step of a session recommender from given hidden states, scores of candidates."""

import torch
from cornac.models.gru4rec.gru4rec import GRU4RecModel


class Model(torch.nn.Module):
    def __init__(self, items, layers):
        super().__init__()
        self.net = GRU4RecModel(items, layers=layers, constrained_embedding=True)

    def forward(self, clicked, candidates, first, second):
        hidden = [first, second]
        scores = self.net(clicked, hidden, candidates, training=False)
        return scores, hidden


def get_inputs():
    return [
        torch.randint(0, 2000, (32,)),
        torch.randint(0, 2000, (256,)),
        torch.randn(32, 100),
        torch.randn(32, 100),
    ]


def get_init_inputs():
    return [2000, [100, 100]]
