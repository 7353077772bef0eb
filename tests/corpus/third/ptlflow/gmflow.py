"""Optical flow with GMFlow: a transformer with shifted windows and cross attention, global
matching by softmax over all pixels, and flow propagation by self-attention."""

import torch
from ptlflow.models.gmflow.gmflow import GMFlow


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.net = GMFlow(num_transformer_layers=layers)

    def forward(self, images):
        return self.net({"images": images})["flows"]


def get_inputs():
    return [torch.rand(1, 2, 3, 128, 160)]


def get_init_inputs():
    return [4]
