"""Bamba: a language model with Mamba-2 layers and attention layers between them."""

import torch
from fms.models.bamba import Bamba, BambaConfig


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        config = BambaConfig(
            src_vocab_size=4000,
            emb_dim=256,
            nheads=8,
            kvheads=2,
            head_dim=32,
            nlayers=layers,
            attn_layer_indices=[1, 3],
            max_expected_seq_len=256,
            state_size=64,
            mamba_n_heads=16,
            n_groups=2,
            chunk_size=32,
        )
        self.net = Bamba(config)
        self.net.reset_parameters()
        self.net.post_init()

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 4000, (2, 64))]


def get_init_inputs():
    return [5]
