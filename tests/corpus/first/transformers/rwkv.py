"""transformers' RWKV: a recurrence over 16 tokens with decays of its own for each channel."""

import torch
from transformers import RwkvConfig, RwkvForCausalLM


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = RwkvForCausalLM(
            RwkvConfig(
                vocab_size=256, context_length=32, hidden_size=width, num_hidden_layers=layers
            )
        )

    def forward(self, tokens):
        return self.net(tokens, use_cache=False).logits


def get_inputs():
    return [torch.randint(0, 256, (2, 16))]


def get_init_inputs():
    return [64, 3]
