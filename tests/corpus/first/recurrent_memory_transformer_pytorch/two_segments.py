"""recurrent-memory-transformer-pytorch's transformer over two segments: the second reads what
the first has written."""

import torch
from recurrent_memory_transformer_pytorch import RecurrentMemoryTransformer


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = RecurrentMemoryTransformer(
            width,
            num_tokens=256,
            num_memory_tokens=8,
            depth=depth,
            seq_len=32,
            dim_head=16,
            heads=4,
            rotary_pos_emb=True,
            use_xl_memories=True,
        )

    def forward(self, tokens):
        first, memories, keys = self.net(tokens[:, :32])
        second, memories, _ = self.net(tokens[:, 32:], memories, xl_memories=keys)
        return torch.cat([first, second], 1), memories


def get_inputs():
    return [torch.randint(0, 256, (1, 64))]


def get_init_inputs():
    return [48, 2]
