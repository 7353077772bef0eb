"""titans-pytorch's MemoryAsContextTransformer: attention by segments, a neural memory in one
layer."""

import torch
from titans_pytorch import MemoryAsContextTransformer


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = MemoryAsContextTransformer(
            num_tokens=128,
            dim=width,
            depth=depth,
            segment_len=16,
            num_persist_mem_tokens=2,
            num_longterm_mem_tokens=4,
            dim_head=16,
            heads=2,
            neural_memory_layers=(2,),
            neural_memory_segment_len=8,
            neural_memory_kwargs={"dim_head": 16, "heads": 2},
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 128, (1, 48))]


def get_init_inputs():
    return [32, 3]
