"""DINOv2: vision transformer with layer scale."""

from functools import partial

import torch
from dinov2.layers import MemEffAttention, NestedTensorBlock
from dinov2.models.vision_transformer import DinoVisionTransformer
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = DinoVisionTransformer(
            img_size=56,
            patch_size=14,
            embed_dim=192,
            depth=4,
            num_heads=3,
            init_values=1.0,
            block_chunks=0,
            block_fn=partial(NestedTensorBlock, attn_class=MemEffAttention),
        )

    def forward(self, x):
        out = self.model(x, is_training=True)
        return {"cls": out["x_norm_clstoken"], "patches": out["x_norm_patchtokens"]}


def get_inputs():
    return [torch.randn(2, 3, 56, 56)]


def get_init_inputs():
    return []
