"""A transformer's block with all of it in one forward (Vaswani et al., 2017; pre-norm).

inline_transformer (layer)
  attention_block: layer_norm, linear, scaled_dot_product_attention, linear, add
  mlp_block: layer_norm, linear, gelu, linear, add
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-2, -1)) * (dim // self.heads) ** -0.5
        y = torch.matmul(torch.softmax(scores, dim=-1), v)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, length, dim))
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 6, 16)]


def get_init_inputs() -> list[int]:
    return [16, 4]
