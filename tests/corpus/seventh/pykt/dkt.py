"""Deep knowledge tracing of pyKT: an LSTM over a student's answers; mastery of every concept."""

import torch
from pykt.models.dkt import DKT


class Model(torch.nn.Module):
    def __init__(self, concepts, width):
        super().__init__()
        self.model = DKT(num_c=concepts, emb_size=width, dropout=0.2)

    def forward(self, concepts, answers):
        return self.model(concepts, answers)


def get_inputs():
    return [torch.randint(0, 120, (8, 100)), torch.randint(0, 2, (8, 100))]


def get_init_inputs():
    return [120, 200]
