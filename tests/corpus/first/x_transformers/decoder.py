"""x-transformers' decoder: rotary positions, SwiGLU, grouped keys, qk norm, memory keys, a gate
on the values."""

import torch
from x_transformers import Decoder, TransformerWrapper


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = TransformerWrapper(
            num_tokens=256,
            max_seq_len=64,
            num_memory_tokens=4,
            attn_layers=Decoder(
                dim=width,
                depth=depth,
                heads=4,
                attn_dim_head=16,
                rotary_pos_emb=True,
                ff_swish=True,
                ff_glu=True,
                attn_kv_heads=2,
                attn_qk_norm=True,
                attn_num_mem_kv=2,
                attn_gate_values=True,
                use_rmsnorm=True,
                shift_tokens=1,
            ),
        )

    def forward(self, tokens):
        return self.net(tokens)


def get_inputs():
    return [torch.randint(0, 256, (2, 48))]


def get_init_inputs():
    return [64, 3]
