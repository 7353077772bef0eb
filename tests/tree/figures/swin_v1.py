"""Swin: windows, shifted in every second block, with a learned bias (Liu et al., 2021).

swin_v1 (model)
  patch_embed: patch_embedding, layer_norm
  swin_transformer_block (layer)
    layer_norm_window_partition: layer_norm, window_partition
    window_attention: linear, relative_position_bias, scaled_dot_product_attention, linear
    window_reverse_add: window_reverse, add
    layer_norm
    mlp: linear, gelu, linear
    add
  swin_transformer_block (layer)
    layer_norm_roll_window_partition: layer_norm, roll, window_partition
    window_attention: linear, relative_position_bias, scaled_dot_product_attention, linear
    window_reverse_roll_add: window_reverse, roll, add
    layer_norm
    mlp: linear, gelu, linear
    add
  patch_merging: cat, layer_norm, linear
  swin_transformer_block (layer)
    layer_norm_window_partition: layer_norm, window_partition
    window_attention: linear, relative_position_bias, scaled_dot_product_attention, linear
    window_reverse_add: window_reverse, add
    layer_norm
    mlp: linear, gelu, linear
    add
  swin_transformer_block (layer)
    layer_norm_roll_window_partition: layer_norm, roll, window_partition
    window_attention: linear, relative_position_bias, scaled_dot_product_attention, linear
    window_reverse_roll_add: window_reverse, roll, add
    layer_norm
    mlp: linear, gelu, linear
    add
  output_head: layer_norm, adaptive_avg_pool1d, linear
"""

import torch
from torch import Tensor, nn


def window_partition(x: Tensor, size: int) -> Tensor:
    B, H, W, C = x.shape
    x = x.view(B, H // size, size, W // size, size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, C)


def window_reverse(windows: Tensor, size: int, H: int, W: int) -> Tensor:
    x = windows.view(-1, H // size, W // size, size, size, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, H, W, windows.shape[-1])


class WindowAttention(nn.Module):
    def __init__(self, dim: int, size: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads, self.scale = num_heads, (dim // num_heads) ** -0.5
        rows = (2 * size - 1) ** 2
        self.relative_position_bias_table = nn.Parameter(0.1 * torch.randn(rows, num_heads))
        coords = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij"))
        offsets = (coords.flatten(1)[:, :, None] - coords.flatten(1)[:, None, :]) + size - 1
        index = offsets[0] * (2 * size - 1) + offsets[1]
        self.register_buffer("relative_position_index", index)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        table = self.relative_position_bias_table[self.relative_position_index.view(-1)]
        relative_position_bias = table.view(N, N, -1).permute(2, 0, 1).contiguous()
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
            area = window_partition(place, size).view(-1, size * size)
            mask = -100.0 * (area.unsqueeze(1) != area.unsqueeze(2)).float()
        self.register_buffer("attn_mask", mask)

    def forward(self, x: Tensor) -> Tensor:
        H, (B, L, C) = self.resolution, x.shape
        shortcut = x
        x = self.norm1(x).view(B, H, H, C)
        if self.shift:
            x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        windows = window_partition(x, self.size).view(-1, self.size * self.size, C)
        windows = self.attn(windows, self.attn_mask).view(-1, self.size, self.size, C)
        x = window_reverse(windows, self.size, H, H)
        if self.shift:
            x = torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))
        x = shortcut + x.view(B, L, C)
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim: int, resolution: int) -> None:
        super().__init__()
        self.resolution = resolution
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        B, _, C = x.shape
        x = x.view(B, self.resolution, self.resolution, C)
        corners = [x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)]
        return self.reduction(self.norm(torch.cat(corners, dim=-1).view(B, -1, 4 * C)))


class BasicLayer(nn.Module):
    def __init__(self, dim: int, resolution: int, downsample: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            SwinTransformerBlock(dim, resolution, dim // 8, 2, shift) for shift in (0, 1)
        )
        self.downsample = PatchMerging(dim, resolution) if downsample else None

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x if self.downsample is None else self.downsample(x)


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
        self.layers = nn.ModuleList([BasicLayer(dim, 8, True), BasicLayer(2 * dim, 4, False)])
        self.norm = nn.LayerNorm(2 * dim)
        self.avgpool = nn.AdaptiveAvgPool1d(1)
        self.head = nn.Linear(2 * dim, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch_embed(x)
        for layer in self.layers:
            x = layer(x)
        x = self.avgpool(self.norm(x).transpose(1, 2))
        return self.head(torch.flatten(x, 1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(1, 3, 32, 32)]


def get_init_inputs() -> list[int]:
    return [16]
