"""Mamba-2: the state space duality, chunk by chunk, between two projections (Dao and Gu, 2024).

mamba2 (layer)
  linear
  add_softplus: add, softplus
  conv1d_silu: conv1d, silu
  negative_exp
  2 x mul
  ssd: cumsum, segment_sum, exp, einsum, sub, exp, einsum, cat, pad, segment_sum, exp, einsum, \
exp, einsum, add
  mul_add: mul, add
  rms_norm_gated_linear: rms_norm_gated, linear
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def segsum(x: Tensor) -> Tensor:
    x_cumsum = torch.cumsum(x, dim=-1)
    sums = x_cumsum[..., :, None] - x_cumsum[..., None, :]
    mask = torch.ones(sums.shape[-2:], dtype=torch.bool, device=x.device).tril()
    return sums.masked_fill(~mask, -torch.inf)


class SSD(nn.Module):
    def __init__(self, chunk_size: int) -> None:
        super().__init__()
        self.chunk_size = chunk_size

    def forward(self, X: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
        X, A, B, C = (x.unflatten(1, (-1, self.chunk_size)) for x in (X, A, B, C))
        A = A.permute(0, 3, 1, 2)
        A_cumsum = torch.cumsum(A, dim=-1)
        L = torch.exp(segsum(A))
        Y_diag = torch.einsum("bcln,bcsn,bhcls,bcshp->bclhp", C, B, L, X)
        decay_states = torch.exp(A_cumsum[..., -1:] - A_cumsum)
        states = torch.einsum("bcln,bhcl,bclhp->bchpn", B, decay_states, X)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
        decay_chunk = torch.exp(segsum(F.pad(A_cumsum[..., -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay_chunk, states)[:, :-1]
        state_decay_out = torch.exp(A_cumsum)
        Y_off = torch.einsum("bcln,bchpn,bhcl->bclhp", C, states, state_decay_out)
        return (Y_diag + Y_off).flatten(1, 2)


class RMSNormGated(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        x = x * F.silu(z)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Model(nn.Module):
    def __init__(self, d_model: int, d_state: int, headdim: int, chunk_size: int) -> None:
        super().__init__()
        self.d_inner, self.d_state, self.headdim = 2 * d_model, d_state, headdim
        self.nheads = self.d_inner // headdim
        d_conv = self.d_inner + 2 * d_state
        self.in_proj = nn.Linear(d_model, self.d_inner + d_conv + self.nheads, bias=False)
        self.conv1d = nn.Conv1d(d_conv, d_conv, 4, groups=d_conv, padding=3)
        self.dt_bias = nn.Parameter(torch.randn(self.nheads))
        self.A_log = nn.Parameter(torch.log(torch.rand(self.nheads) + 1))
        self.D = nn.Parameter(torch.ones(self.nheads))
        self.ssd = SSD(chunk_size)
        self.norm = RMSNormGated(self.d_inner)
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, u: Tensor) -> Tensor:
        d_conv = self.d_inner + 2 * self.d_state
        z, xBC, dt = self.in_proj(u).split([self.d_inner, d_conv, self.nheads], dim=-1)
        dt = F.softplus(dt + self.dt_bias)
        xBC = self.conv1d(xBC.transpose(1, 2))[..., : u.shape[1]].transpose(1, 2)
        x, B, C = F.silu(xBC).split([self.d_inner, self.d_state, self.d_state], dim=-1)
        x = x.unflatten(-1, (-1, self.headdim))
        A = -torch.exp(self.A_log)
        y = self.ssd(x * dt.unsqueeze(-1), A * dt, B, C)
        y = y + x * self.D.unsqueeze(-1)
        return self.out_proj(self.norm(y.flatten(2), z))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 8, 16)]


def get_init_inputs() -> list[int]:
    return [16, 4, 8, 4]
