"""Student policy of the ANYmal robot: belief state encoder with GRU cells, and its decoder."""

import torch
from anymal_belief_state_encoder_decoder_pytorch import Student
from torch import nn


class Model(nn.Module):
    def __init__(self, actions):
        super().__init__()
        self.model = Student(actions)

    def forward(self, proprio, extero, hiddens):
        return self.model(proprio, extero, hiddens=hiddens, return_estimated_info=True)


def get_inputs():
    return [torch.randn(2, 133), torch.randn(2, 4, 52), torch.randn(2, 2, 50)]


def get_init_inputs():
    return [12]
