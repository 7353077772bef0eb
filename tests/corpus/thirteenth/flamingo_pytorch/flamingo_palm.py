"""Flamingo: PaLM blocks with gated cross attention to resampled image embeddings."""

import torch
from flamingo_pytorch import FlamingoPaLM
from torch import nn


class Mix(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = FlamingoPaLM(
            num_tokens=1000,
            dim=dim,
            depth=depth,
            heads=4,
            dim_head=32,
            media_token_id=3,
            cross_attn_every=2,
            img_encoder=nn.Sequential(nn.Conv2d(3, dim, 16, stride=16), nn.Flatten(2), Mix()),
            perceiver_num_latents=16,
            perceiver_depth=2,
        )

    def forward(self, text, images):
        return self.model(text, images=images)


def get_inputs():
    text = torch.randint(4, 1000, (2, 48))
    text[:, 0] = 3
    return [text, torch.randn(2, 1, 3, 64, 64)]


def get_init_inputs():
    return [128, 4]
