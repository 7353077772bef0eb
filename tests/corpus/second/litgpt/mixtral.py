"""A Mixtral-like model: two of four experts for each token."""

import torch
from litgpt import GPT, Config


class Model(torch.nn.Module):
    def __init__(self, layers, dim):
        super().__init__()
        config = Config.from_name(
            "Mixtral-8x7B-v0.1",
            n_layer=layers,
            n_embd=dim,
            n_head=4,
            n_query_groups=2,
            intermediate_size=2 * dim,
            n_expert=4,
            block_size=128,
            padded_vocab_size=1000,
        )
        self.net = GPT(config)

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (1, 32))]


def get_init_inputs():
    return [2, 128]
