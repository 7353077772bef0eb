"""Maia-2, which predicts the move of a chess player of a given strength."""

from types import SimpleNamespace

import torch
from maia2.main import MAIA2Model
from torch import nn


class Model(nn.Module):
    def __init__(self, moves, ratings):
        super().__init__()
        cfg = SimpleNamespace(
            input_channels=18,
            dim_cnn=256,
            num_blocks_cnn=5,
            vit_length=8,
            dim_vit=512,
            num_blocks_vit=2,
            elo_dim=128,
        )
        self.model = MAIA2Model(moves, {str(i): i for i in range(ratings)}, cfg)

    def forward(self, boards, own, other, legal):
        moves, side, value = self.model(boards, own, other)
        return (moves * legal).softmax(-1), side, (value / 2 + 0.5).clamp(0, 1)


def get_inputs():
    boards = (torch.rand(4, 18, 8, 8) < 0.2).float()
    legal = (torch.rand(4, 1880) < 0.05).float()
    return [boards, torch.tensor([1, 4, 7, 10]), torch.tensor([2, 4, 6, 8]), legal]


def get_init_inputs():
    return [1880, 11]
