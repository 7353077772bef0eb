"""SASRec's transformer layers of rectools over a session of items."""

import torch
from rectools.models.nn.transformers.net_blocks import LearnableInversePositionalEncoding
from rectools.models.nn.transformers.sasrec import SASRecTransformerLayers
from torch import nn


class Model(nn.Module):
    def __init__(self, items, dim, blocks, length):
        super().__init__()
        self.items = nn.Embedding(items, dim, padding_idx=0)
        self.position = LearnableInversePositionalEncoding(True, length, dim)
        self.layers = SASRecTransformerLayers(
            n_blocks=blocks, n_factors=dim, n_heads=4, dropout_rate=0.2
        )

    def forward(self, session):
        x = self.position(self.items(session))
        future = ~torch.tril(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool))
        timeline = (session != 0).unsqueeze(-1)
        x = self.layers(x, timeline, future, None)
        return x[:, -1] @ self.items.weight.t()


def get_inputs():
    session = torch.randint(1, 3000, (4, 50))
    session[2, :20] = 0
    return [session]


def get_init_inputs():
    return [3000, 128, 2, 50]
