"""Block-recurrent transformer reading two blocks: the second sees the first one's memories.

Two of its six layers keep recurrent state vectors between blocks, all layers keep the keys and
values of the block before, as a user who streams a long document does.
"""

import torch
from block_recurrent_transformer_pytorch import BlockRecurrentTransformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = BlockRecurrentTransformer(
            num_tokens=2000,
            dim=dim,
            depth=depth,
            dim_head=32,
            heads=8,
            max_seq_len=256,
            block_width=128,
            num_state_vectors=64,
            recurrent_layers=(4, 5),
            read_recurrent_layers=(3, 5),
        )

    def forward(self, first, second):
        logits, memories, states = self.net(first, return_memories_and_states=True)
        following, memories, states = self.net(
            second, xl_memories=memories, states=states, return_memories_and_states=True
        )
        return logits, following, states


def get_inputs():
    return [torch.randint(0, 2000, (2, 256)), torch.randint(0, 2000, (2, 200))]


def get_init_inputs():
    return [256, 6]
