"""A Linformer language model: keys and values of 512 tokens projected down to 64."""

import torch
from linformer import LinformerLM


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = LinformerLM(
            num_tokens=1000,
            dim=dim,
            seq_len=512,
            depth=depth,
            heads=4,
            k=64,
            one_kv_head=True,
            share_kv=True,
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (1, 512))]


def get_init_inputs():
    return [128, 4]
