"""transformers' Longformer: sliding windows of 16 tokens, two of which attend to all."""

import torch
from transformers import LongformerConfig, LongformerModel


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = LongformerConfig(
            attention_window=16,
            vocab_size=300,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=2 * width,
            max_position_embeddings=80,
            pad_token_id=1,
        )
        self.net = LongformerModel(config)

    def forward(self, tokens, everywhere):
        return self.net(tokens, global_attention_mask=everywhere).last_hidden_state


def get_inputs():
    everywhere = torch.zeros(1, 64, dtype=torch.long)
    everywhere[:, [0, 20]] = 1
    return [torch.randint(2, 300, (1, 64)), everywhere]


def get_init_inputs():
    return [64, 2]
