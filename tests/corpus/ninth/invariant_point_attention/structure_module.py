"""Structure module of invariant point attention blocks that move the frames of residues."""

import torch
from invariant_point_attention import IPABlock
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, depth, tokens):
        super().__init__()
        self.embed = nn.Embedding(tokens, dim)
        self.blocks = nn.ModuleList(
            IPABlock(dim=dim, heads=8, pairwise_repr_dim=dim) for _ in range(depth)
        )
        self.turn = nn.Linear(dim, 3)
        self.shift = nn.Linear(dim, 3)

    def forward(self, residues, pairs, rotations, translations, mask):
        x = self.embed(residues)
        for block in self.blocks:
            x = block(
                x,
                pairwise_repr=pairs,
                rotations=rotations,
                translations=translations,
                mask=mask,
            )
            w = self.turn(x)
            zero = torch.zeros_like(w[..., 0])
            a, b, c = w.unbind(-1)
            skew = torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], -1).unflatten(-1, (3, 3))
            translations = translations + (rotations @ self.shift(x)[..., None]).squeeze(-1)
            rotations = rotations @ torch.linalg.matrix_exp(skew)
        return x, rotations, translations


def get_inputs():
    mask = torch.ones(1, 64, dtype=torch.bool)
    mask[:, 60:] = False
    return [
        torch.randint(0, 21, (1, 64)),
        torch.randn(1, 64, 64, 64),
        torch.eye(3).expand(1, 64, 3, 3).contiguous(),
        torch.randn(1, 64, 3),
        mask,
    ]


def get_init_inputs():
    return [64, 3, 21]
