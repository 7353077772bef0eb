"""Neural logic machine over objects' unary and binary predicates, from neural-logic-machine."""

import torch
from neural_logic_machine.padded_NLM import NLM
from torch import nn


class Model(nn.Module):
    def __init__(self, width, objects):
        super().__init__()
        self.model = NLM([[width] * 4, [width] * 4], [0, 4, 4, 0], mlp_hidden_features=16)
        self.objects = objects
        with torch.no_grad():
            self.model([None, torch.zeros(2, 6, 3), torch.zeros(2, 6, 6, 5), None], objects)

    def forward(self, unary, binary):
        outputs = self.model([None, unary, binary, None], self.objects)
        return [output for output in outputs if output is not None]


def get_inputs():
    return [torch.rand(2, 6, 3), torch.rand(2, 6, 6, 5)]


def get_init_inputs():
    return [8, [6, 5]]
