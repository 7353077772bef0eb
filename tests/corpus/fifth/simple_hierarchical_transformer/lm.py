"""Language model with three hierarchies of token streams, merged after each layer."""

import torch
from simple_hierarchical_transformer import HierarchicalTransformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = HierarchicalTransformer(
            num_tokens=256,
            dim=dim,
            depth=depth,
            seq_len=256,
            hierarchies=(1, 2, 8),
            window_sizes=(32, 64, None),
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(1, 256, (2, 256))]


def get_init_inputs():
    return [192, 4]
