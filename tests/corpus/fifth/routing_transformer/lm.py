"""Routing Transformer: causal language model with local heads and k-means routed heads."""

import torch
from routing_transformer import RoutingTransformerLM


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = RoutingTransformerLM(
            num_tokens=2000,
            dim=dim,
            depth=depth,
            heads=8,
            dim_head=32,
            max_seq_len=512,
            window_size=64,
            n_local_attn_heads=(4, 4, 0, 0),
            causal=True,
            ff_glu=True,
            use_scale_norm=True,
        )

    def forward(self, tokens):
        logits, loss = self.net(tokens)
        return logits, loss


def get_inputs():
    return [torch.randint(0, 2000, (1, 512))]


def get_init_inputs():
    return [256, 4]
