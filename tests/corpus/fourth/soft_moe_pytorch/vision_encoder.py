"""A transformer encoder whose later blocks have soft mixtures of experts instead of MLPs: slots are
weighted averages of tokens; the last mixture makes its slots from the tokens themselves."""

import torch
from soft_moe_pytorch import DynamicSlotsSoftMoE, SoftMoE
from torch import nn


class Block(nn.Module):
    def __init__(self, dim, heads, feed):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.feed_norm = nn.LayerNorm(dim)
        self.feed = feed

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.feed(self.feed_norm(x))


class Model(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 8, stride=8)
        self.place = nn.Parameter(torch.randn(64, dim) * 0.02)
        plain = [
            nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))
            for _ in range(2)
        ]
        soft = [
            SoftMoE(dim, seq_len=64, num_experts=experts),
            SoftMoE(dim, seq_len=64, num_experts=experts, geglu=True, use_layernorm=True),
        ]
        last = DynamicSlotsSoftMoE(dim, num_experts=experts, geglu=True)
        self.blocks = nn.Sequential(*(Block(dim, 4, feed) for feed in [*plain, *soft, last]))
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 100))

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2) + self.place
        return self.head(self.blocks(x).mean(dim=1))


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return [128, 4]
