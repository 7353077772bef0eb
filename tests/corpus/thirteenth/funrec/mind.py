"""FunRec: MIND, multiple interests of a user by capsule routing."""

import torch
from funrec.models.p2019.mind.core import MIND
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, length, items):
        super().__init__()
        self.model = MIND(dim, length, items, interest_num=4)

    def forward(self, item_seq, mask, item):
        return self.model(item_seq, mask, item, train=False)


def get_inputs():
    return [torch.randint(1, 1000, (8, 20)), torch.ones(8, 20), torch.randint(1, 1000, (8, 1))]


def get_init_inputs():
    return [32, 20, 1000]
