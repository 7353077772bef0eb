"""Swin V2: cosine attention, a position bias made by a small MLP, norms after (Liu et al., 2022).

swin_v2 (model)
  patch_embed: patch_embedding, layer_norm
  swin_transformer_block (layer)
    window_partition
    window_attention: linear, l2_norm, l2_norm, linear, relu, linear, relative_position_bias, scaled_sigmoid, scaled_dot_product_attention, linear
    window_reverse_layer_norm_add: window_reverse, layer_norm, add
    mlp: linear, gelu, linear
    layer_norm_add: layer_norm, add
  swin_transformer_block (layer)
    roll_window_partition: roll, window_partition
    window_attention: linear, l2_norm, l2_norm, linear, relu, linear, relative_position_bias, scaled_sigmoid, scaled_dot_product_attention, linear
    window_reverse_roll_layer_norm_add: window_reverse, roll, layer_norm, add
    mlp: linear, gelu, linear
    layer_norm_add: layer_norm, add
  output_head: layer_norm, mean, linear
"""  # noqa: E501

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def window_partition(x: Tensor, size: int) -> Tensor:
    B, H, W, C = x.shape
    x = x.view(B, H // size, size, W // size, size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size * size, C)


def window_reverse(windows: Tensor, size: int, H: int, W: int) -> Tensor:
    x = windows.view(-1, H // size, W // size, size, size, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, H, W, windows.shape[-1])


class WindowAttention(nn.Module):
    def __init__(self, dim: int, size: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.logit_scale = nn.Parameter(torch.log(10 * torch.ones(num_heads, 1, 1)))
        self.cpb_mlp = nn.Sequential(
            nn.Linear(2, 24), nn.ReLU(inplace=True), nn.Linear(24, num_heads, bias=False)
        )
        steps = torch.arange(1 - size, size, dtype=torch.float32) / (size - 1) * 8
        table = torch.stack(torch.meshgrid(steps, steps, indexing="ij"), dim=-1)
        table = torch.sign(table) * torch.log2(table.abs() + 1.0) / 3
        self.register_buffer("relative_coords_table", table.unsqueeze(0))
        coords = torch.cartesian_prod(torch.arange(size), torch.arange(size))
        offsets = coords[:, None] - coords[None, :] + size - 1
        index = offsets[..., 0] * (2 * size - 1) + offsets[..., 1]
        self.register_buffer("relative_position_index", index)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        attn = attn * torch.clamp(self.logit_scale, max=math.log(100.0)).exp()
        bias_table = self.cpb_mlp(self.relative_coords_table).view(-1, self.num_heads)
        relative_position_bias = bias_table[self.relative_position_index.view(-1)].view(N, N, -1)
        relative_position_bias = relative_position_bias.permute(2, 0, 1).contiguous()
        relative_position_bias = 16 * torch.sigmoid(relative_position_bias)
        attn = attn + relative_position_bias.unsqueeze(0)
        if mask is not None:
            windows = mask.shape[0]
            attn = attn.view(B // windows, windows, self.num_heads, N, N)
            attn = (attn + mask.unsqueeze(1).unsqueeze(0)).view(-1, self.num_heads, N, N)
        x = (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj(x)


class Mlp(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class SwinTransformerBlock(nn.Module):
    def __init__(self, dim: int, resolution: int, num_heads: int, size: int, shift: int) -> None:
        super().__init__()
        self.resolution, self.size, self.shift = resolution, size, shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, size, num_heads)
        self.mlp = Mlp(dim)
        mask = None
        if shift:
            place = torch.zeros(1, resolution, resolution, 1)
            edges = (slice(0, -size), slice(-size, -shift), slice(-shift, None))
            for number, (h, w) in enumerate((h, w) for h in edges for w in edges):
                place[:, h, w] = number
            area = window_partition(place, size).squeeze(-1)
            mask = -100.0 * (area.unsqueeze(1) != area.unsqueeze(2)).float()
        self.register_buffer("attn_mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        H, (B, L, C) = self.resolution, x.shape
        shortcut, x = x, x.view(B, H, H, C)
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = self.attn(window_partition(x, self.size), self.attn_mask)
        x = window_reverse(windows, self.size, H, H)
        if self.shift:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        x = shortcut + self.norm1(x.view(B, L, C))
        return x + self.norm2(self.mlp(x))


class PatchEmbed(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(3, dim, kernel_size=4, stride=4)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.proj(x).flatten(2).transpose(1, 2))


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.patch_embed = PatchEmbed(dim)
        self.blocks = nn.ModuleList(SwinTransformerBlock(dim, 8, 2, 4, shift) for shift in (0, 2))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(1, 3, 32, 32)]


def get_init_inputs() -> list[int]:
    return [16]
