"""Gibbs steps of learnergy's restricted Boltzmann machine."""

import torch
from learnergy.models.bernoulli import RBM
from torch import nn


class Model(nn.Module):
    def __init__(self, visible, hidden):
        super().__init__()
        self.model = RBM(n_visible=visible, n_hidden=hidden, steps=3)

    def forward(self, v):
        pos_prob, _pos, neg_prob, _neg, visible = self.model.gibbs_sampling(v)
        return pos_prob, neg_prob, visible, self.model.energy(visible), self.model(v)


def get_inputs():
    return [(torch.rand(16, 256) < 0.4).float()]


def get_init_inputs():
    return [256, 128]
