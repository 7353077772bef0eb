"""Transformer-XL with adaptive softmax and memories."""

import torch
from pytorch_transformers import TransfoXLConfig, TransfoXLModel
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = TransfoXLModel(
            TransfoXLConfig(
                vocab_size_or_config_json_file=1000,
                cutoffs=[100, 400],
                d_model=128,
                d_embed=128,
                n_head=4,
                d_head=32,
                d_inner=256,
                n_layer=3,
                tgt_len=32,
                mem_len=32,
                clamp_len=64,
                div_val=2,
            )
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.randint(0, 1000, (2, 32))]


def get_init_inputs():
    return []
