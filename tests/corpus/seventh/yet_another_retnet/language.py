"""RetNet of yet-another-retnet: a language model on multi-scale retention, in its parallel form."""

import torch
from yet_another_retnet.retnet import RetNet


class Model(torch.nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.model = RetNet(
            num_tokens=tokens, d_model=width, nhead=8, num_layers=6, dim_feedforward=4 * width
        )

    def forward(self, tokens):
        return self.model.forward_parallel(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (2, 128))]


def get_init_inputs():
    return [1000, 256]
