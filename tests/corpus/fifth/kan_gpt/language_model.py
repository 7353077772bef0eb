"""KAN-GPT: a GPT whose linear layers are spline networks (efficient KAN)."""

import torch
from kan_gpt.model import GPT


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        config = GPT.get_default_config()
        config.model_type = None
        config.n_layer, config.n_head, config.n_embd = layers, 4, 96
        config.vocab_size, config.block_size = 500, 64
        config.architecture = "KAN"
        config.kan_implementation = "EFFICIENT_KAN"
        self.net = GPT(config)

    def forward(self, tokens):
        logits, _ = self.net(tokens)
        return logits


def get_inputs():
    return [torch.randint(0, 500, (2, 32))]


def get_init_inputs():
    return [3]
