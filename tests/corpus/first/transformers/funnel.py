"""transformers' Funnel: pooled queries make the sequence shorter by half, a decoder makes it
long again."""

import torch
from transformers import FunnelConfig, FunnelModel


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = FunnelModel(
            FunnelConfig(
                vocab_size=300,
                block_sizes=[2, 2, 1],
                num_decoder_layers=2,
                d_model=width,
                n_head=4,
                d_head=16,
                d_inner=2 * width,
            )
        )

    def forward(self, tokens, mask):
        return self.net(tokens, attention_mask=mask).last_hidden_state


def get_inputs():
    return [torch.randint(0, 300, (2, 32)), (torch.arange(32) < torch.tensor([[32], [25]])).long()]


def get_init_inputs():
    return [64]
