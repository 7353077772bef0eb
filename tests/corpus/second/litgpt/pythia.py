"""A Pythia-like GPT: parallel residuals, a quarter of each head rotated."""

import torch
from litgpt import GPT, Config


class Model(torch.nn.Module):
    def __init__(self, layers, dim):
        super().__init__()
        config = Config.from_name(
            "pythia-14m",
            n_layer=layers,
            n_embd=dim,
            n_head=4,
            block_size=128,
            padded_vocab_size=1000,
        )
        self.net = GPT(config)

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (1, 64))]


def get_init_inputs():
    return [3, 128]
