"""Nystromformer encoder: attention by landmarks and an iterated pseudo-inverse, with a key mask."""

import torch
from nystrom_attention import Nystromformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth, landmarks):
        super().__init__()
        self.embedding = torch.nn.Embedding(1000, dim)
        self.net = Nystromformer(
            dim=dim, depth=depth, heads=8, dim_head=32, num_landmarks=landmarks
        )
        self.head = torch.nn.Linear(dim, 5)

    def forward(self, tokens, mask):
        return self.head(self.net(self.embedding(tokens), mask=mask).mean(dim=1))


def get_inputs():
    lengths = torch.tensor([700, 512])
    return [torch.randint(0, 1000, (2, 700)), torch.arange(700)[None] < lengths[:, None]]


def get_init_inputs():
    return [256, 4, 64]
