"""gMLP language model: causal spatial gating units with several heads and a small attention beside
each gate."""

import torch
from g_mlp_pytorch import gMLP


class Model(torch.nn.Module):
    def __init__(self, tokens, dim, depth, length):
        super().__init__()
        self.net = gMLP(
            num_tokens=tokens,
            dim=dim,
            depth=depth,
            seq_len=length,
            heads=2,
            attn_dim=32,
            causal=True,
            prob_survival=0.9,
        )
        for parameter in self.parameters():
            if parameter.abs().max() < 1e-4:  # starts as (almost) zero, and would hide its branch
                torch.nn.init.normal_(parameter, std=0.05)

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 512, (2, 96))]


def get_init_inputs():
    return [512, 192, 6, 96]
