"""Reformer: reversible layers, attention inside the buckets of a random hash, chunks of the
feed- forward."""

import torch
from reformer_pytorch import ReformerLM


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = ReformerLM(
            num_tokens=1000,
            dim=dim,
            depth=depth,
            max_seq_len=256,
            heads=4,
            bucket_size=32,
            n_hashes=2,
            ff_chunks=4,
            causal=True,
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 1000, (1, 256))]


def get_init_inputs():
    return [128, 2]
