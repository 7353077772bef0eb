"""The minGPT prior of taming transformers."""

import torch
from taming.modules.transformer.mingpt import GPT
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = GPT(vocab_size=512, block_size=64, n_layer=3, n_head=4, n_embd=128)

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 512, (2, 64))]


def get_init_inputs():
    return []
