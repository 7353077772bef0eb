"""RWKV-7 language model: time mixing with a generalised delta rule, channel mixing."""

import torch
from rwkv7_hf import RWKV7Config, RWKV7ForCausalLM
from torch import nn


class Model(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        self.model = RWKV7ForCausalLM(
            RWKV7Config(
                vocab_size=1000,
                hidden_size=hidden,
                num_hidden_layers=layers,
                head_dim=32,
                decay_low_rank_dim=16,
                gate_low_rank_dim=32,
                a_low_rank_dim=16,
                v_low_rank_dim=16,
                use_cache=False,
            )
        )

    def forward(self, tokens):
        return self.model(input_ids=tokens, use_cache=False).logits


def get_inputs():
    return [torch.randint(1, 1000, (1, 12))]


def get_init_inputs():
    return [128, 3]
