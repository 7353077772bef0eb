"""A residual attention block around PyTorch's own attention, norms before (Radford et al., 2021).

multihead_attention (layer)
  layer_norm
  multihead_attention: linear, scaled_dot_product_attention, linear
  add
  layer_norm
  mlp: linear, quick_gelu, linear
  add
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn


class QuickGELU(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


class Model(nn.Module):
    def __init__(self, d_model: int, n_head: int) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_head)
        self.ln_1 = nn.LayerNorm(d_model)
        self.mlp = nn.Sequential(
            OrderedDict(
                c_fc=nn.Linear(d_model, 4 * d_model),
                gelu=QuickGELU(),
                c_proj=nn.Linear(4 * d_model, d_model),
            )
        )
        self.ln_2 = nn.LayerNorm(d_model)

    def attention(self, x: Tensor) -> Tensor:
        return self.attn(x, x, x, need_weights=False)[0]

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def get_inputs() -> list[Tensor]:
    return [torch.randn(6, 2, 16)]


def get_init_inputs() -> list[int]:
    return [16, 4]
