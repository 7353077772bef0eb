"""A causal language model with ST-MoE blocks: the router sends each token to its two best experts
with a limited capacity; the balance and the z loss come out too."""

import torch
from st_moe_pytorch import MoE, SparseMoEBlock
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth, experts):
        super().__init__()
        self.embed = nn.Embedding(2000, dim)
        self.place = nn.Embedding(128, dim)
        self.attentions = nn.ModuleList(
            nn.MultiheadAttention(dim, 4, batch_first=True) for _ in range(depth)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.blocks = nn.ModuleList(
            SparseMoEBlock(
                MoE(dim=dim, num_experts=experts, gating_top_n=2, differentiable_topk=False),
                add_ff_before=True,
                add_ff_after=True,
            )
            for _ in range(depth)
        )
        self.head = nn.Linear(dim, 2000)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.embed(tokens) + self.place(torch.arange(length))
        extra = 0.0
        for norm, attention, block in zip(self.norms, self.attentions, self.blocks, strict=True):
            y = norm(x)
            x = x + attention(y, y, y, attn_mask=mask, need_weights=False)[0]
            x, aux, *_ = block(x)
            extra = extra + aux
        return self.head(x), extra


def get_inputs():
    return [torch.randint(0, 2000, (2, 64))]


def get_init_inputs():
    return [128, 3, 8]
