"""local-attention's LocalTransformer: causal windows of 16 tokens that look back by one."""

import torch
from local_attention import LocalTransformer


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = LocalTransformer(
            num_tokens=256,
            max_seq_len=96,
            dim=width,
            depth=depth,
            local_attn_window_size=16,
            dim_head=16,
            heads=4,
            use_dynamic_pos_bias=True,
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 256, (2, 80))]


def get_init_inputs():
    return [64, 3]
