"""transformers' BigBird: blocks of 8 tokens attend to the first, the last, their neighbours and
two random ones."""

import torch
from transformers import BigBirdConfig, BigBirdModel


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = BigBirdConfig(
            vocab_size=300,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=2 * width,
            max_position_embeddings=128,
            block_size=8,
            num_random_blocks=2,
        )
        self.net = BigBirdModel(config)

    def forward(self, tokens):
        return self.net(tokens).last_hidden_state


def get_inputs():
    return [torch.randint(0, 300, (1, 96))]


def get_init_inputs():
    return [64, 2]
