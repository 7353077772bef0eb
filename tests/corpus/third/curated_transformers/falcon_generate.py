"""Falcon with grouped queries and parallel attention: a prompt, then one more step from its
cache."""

import torch
from curated_transformers.layers.attention import AttentionMask
from curated_transformers.models import FalconCausalLM, FalconConfig


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = FalconCausalLM(
            FalconConfig(
                dtype=torch.float32,
                hidden_width=width,
                n_hidden_layers=layers,
                n_query_heads=8,
                n_key_value_heads=2,
                new_decoder_architecture=True,
                rotary_embedding_fraction=1.0,
                n_pieces=4000,
            )
        )

    def forward(self, prompt, following, mask):
        first = self.net(prompt, AttentionMask(mask[:, : prompt.shape[1]]), store_cache=True)
        second = self.net(following, AttentionMask(mask), cache=first.cache)
        return first.logits, second.logits


def get_inputs():
    mask = torch.ones(2, 49, dtype=torch.bool)
    mask[1, :10] = False
    return [torch.randint(0, 4000, (2, 48)), torch.randint(0, 4000, (2, 1)), mask]


def get_init_inputs():
    return [512, 6]
