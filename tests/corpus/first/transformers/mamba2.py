"""transformers' Mamba2: chunks of 16 tokens scanned by matrix products."""

import torch
from transformers import Mamba2Config, Mamba2ForCausalLM


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = Mamba2Config(
            num_heads=8,
            head_dim=width // 4,
            hidden_size=width,
            state_size=16,
            vocab_size=256,
            num_hidden_layers=layers,
            n_groups=2,
            chunk_size=16,
        )
        self.net = Mamba2ForCausalLM(config)

    def forward(self, tokens):
        return self.net(tokens, use_cache=False).logits


def get_inputs():
    return [torch.randint(0, 256, (2, 40))]


def get_init_inputs():
    return [64, 3]
