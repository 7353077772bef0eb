"""A Gemma-2-like model: sliding windows in every other layer, soft caps, norms after the blocks,
grouped queries."""

import torch
from litgpt import GPT, Config


class Model(torch.nn.Module):
    def __init__(self, layers, dim):
        super().__init__()
        config = Config.from_name(
            "Gemma-2-2b",
            n_layer=layers,
            n_embd=dim,
            n_head=4,
            n_query_groups=2,
            head_size=32,
            intermediate_size=4 * dim,
            block_size=128,
            sliding_window_size=16,
            padded_vocab_size=1000,
        )
        self.net = GPT(config)

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (1, 64))]


def get_init_inputs():
    return [4, 128]
