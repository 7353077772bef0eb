"""Performer language model: causal linear attention with random orthogonal features (written as
cumulative sums, not the CUDA kernel), half of the heads local, rotary positions, GLU and
ReZero."""

import torch
from performer_pytorch import PerformerLM


class Model(torch.nn.Module):
    def __init__(self, tokens, length, dim, depth):
        super().__init__()
        self.net = PerformerLM(
            num_tokens=tokens,
            max_seq_len=length,
            dim=dim,
            depth=depth,
            heads=8,
            causal=True,
            local_attn_heads=4,
            local_window_size=64,
            nb_features=64,
            ff_glu=True,
            rotary_position_emb=True,
            use_rezero=True,
            tie_embed=True,
            shift_tokens=True,
            auto_check_redraw=False,
        )

    def forward(self, ids):
        return self.net(ids)


def get_inputs():
    return [torch.randint(0, 2000, (2, 256))]


def get_init_inputs():
    return [2000, 256, 256, 4]
