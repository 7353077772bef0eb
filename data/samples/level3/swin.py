"""Swin-like transformer: attention within windows that shift, with relative position bias.

Feature maps stay in [batch, height, width, channels] order. Every second block rolls the map by
half a window, so that information crosses window borders; a mask keeps apart the regions that the
roll has brought together.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 2
IMAGE_SIZE = 112
PATCH_SIZE = 4
WINDOW = 7
DIM = 64
DEPTHS = [2, 2]
HEAD_DIM = 32
NUM_CLASSES = 100


def to_windows(x: Tensor, window: int) -> Tensor:
    """[batch, height, width, channels] -> [batch * windows, window * window, channels]"""
    batch_size, height, width, channels = x.shape
    x = x.view(batch_size, height // window, window, width // window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, window * window, channels)


def from_windows(windows: Tensor, window: int, height: int, width: int) -> Tensor:
    """The inverse of `to_windows`."""
    channels = windows.shape[-1]
    x = windows.view(-1, height // window, width // window, window, window, channels)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, height, width, channels)


def relative_position_index(window: int) -> Tensor:
    """For each pair of places in a window, the row of the bias table that holds their offset."""
    rows, columns = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
    places = torch.stack((rows.flatten(), columns.flatten()))
    offsets = places[:, :, None] - places[:, None, :] + window - 1
    return offsets[0] * (2 * window - 1) + offsets[1]


def shift_mask(resolution: int, window: int, shift: int) -> Tensor:
    """[windows, places, places], True where two places of a window were neighbours before."""
    edges = torch.tensor([resolution - window, resolution - shift])
    band = torch.bucketize(torch.arange(resolution), edges, right=True)
    region = band[:, None] * 3 + band[None, :]
    regions = to_windows(region.view(1, resolution, resolution, 1), window).squeeze(-1)
    return regions[:, :, None] == regions[:, None, :]


class WindowAttention(nn.Module):
    def __init__(self, dim: int, head_dim: int, window: int):
        super().__init__()
        self.num_heads = dim // head_dim
        self.scale = head_dim**-0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.bias_table = nn.Parameter(0.02 * torch.randn((2 * window - 1) ** 2, self.num_heads))
        self.register_buffer("bias_index", relative_position_index(window))

    def forward(self, windows: Tensor, mask: Tensor | None) -> Tensor:
        count, places, dim = windows.shape
        qkv = self.qkv(windows).view(count, places, 3, self.num_heads, -1)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)

        bias = self.bias_table[self.bias_index].permute(2, 0, 1)
        scores = (query * self.scale) @ key.transpose(-2, -1) + bias
        if mask is not None:
            scores = scores.view(-1, mask.shape[0], self.num_heads, places, places)
            scores = scores.masked_fill(~mask[:, None], -100.0)
            scores = scores.view(count, self.num_heads, places, places)

        out = F.softmax(scores, dim=-1) @ value
        return self.proj(out.transpose(1, 2).reshape(count, places, dim))


class SwinBlock(nn.Module):
    def __init__(self, dim: int, head_dim: int, resolution: int, window: int, shift: int):
        super().__init__()
        self.window = window
        self.shift = shift
        self.norm1 = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, head_dim, window)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        mask = shift_mask(resolution, window, shift) if shift else None
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        _, height, width, _ = x.shape
        h = self.norm1(x)
        if self.shift:
            h = torch.roll(h, shifts=(-self.shift, -self.shift), dims=(1, 2))
        h = self.attn(to_windows(h, self.window), self.mask)
        h = from_windows(h, self.window, height, width)
        if self.shift:
            h = torch.roll(h, shifts=(self.shift, self.shift), dims=(1, 2))
        x = x + h
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    """Halves the resolution: each 2 x 2 square becomes one place with twice the channels."""

    def __init__(self, dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(4 * dim)
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        top_left, top_right = x[:, 0::2, 0::2], x[:, 0::2, 1::2]
        bottom_left, bottom_right = x[:, 1::2, 0::2], x[:, 1::2, 1::2]
        x = torch.cat([top_left, bottom_left, top_right, bottom_right], dim=-1)
        return self.reduction(self.norm(x))


class Model(nn.Module):
    def __init__(
        self,
        image_size: int,
        patch_size: int,
        window: int,
        dim: int,
        depths: list[int],
        head_dim: int,
        num_classes: int,
    ):
        super().__init__()
        resolution = image_size // patch_size
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch_size, stride=patch_size)
        self.stages = nn.ModuleList()
        for stage, depth in enumerate(depths):
            layers = nn.Sequential()
            if stage > 0:
                layers.append(PatchMerging(dim))
                dim, resolution = 2 * dim, resolution // 2
            for index in range(depth):
                shift = window // 2 if index % 2 == 1 else 0
                layers.append(SwinBlock(dim, head_dim, resolution, window, shift))
            self.stages.append(layers)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images).permute(0, 2, 3, 1)
        for stage in self.stages:
            x = stage(x)
        x = self.norm(x).mean(dim=(1, 2))
        return self.head(x)


def get_inputs():
    return [torch.rand(BATCH_SIZE, 3, IMAGE_SIZE, IMAGE_SIZE)]


def get_init_inputs():
    return [IMAGE_SIZE, PATCH_SIZE, WINDOW, DIM, DEPTHS, HEAD_DIM, NUM_CLASSES]
