"""transformers' Mixtral: four experts, two for each token, grouped queries within a window."""

import torch
from transformers import MixtralConfig, MixtralForCausalLM


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = MixtralConfig(
            vocab_size=256,
            hidden_size=width,
            intermediate_size=2 * width,
            num_hidden_layers=layers,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=4,
            num_experts_per_tok=2,
            sliding_window=16,
        )
        self.net = MixtralForCausalLM(config)

    def forward(self, tokens):
        return self.net(tokens, use_cache=False).logits


def get_inputs():
    return [torch.randint(0, 256, (1, 32))]


def get_init_inputs():
    return [64, 2]
