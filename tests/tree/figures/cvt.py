"""CvT: convolutions embed the tokens and project queries, keys and values (Wu et al., 2021).

cvt (model)
  conv_embed: conv2d, layer_norm
  block (layer)
    layer_norm
    attention: conv2d, batch_norm, conv2d, batch_norm, conv2d, batch_norm, \
linear, linear, linear, scaled_dot_product_attention, linear
    add
    layer_norm
    mlp: linear, gelu, linear
    add
  conv_embed: conv2d, layer_norm
  cat
  2 x block (layer)
    layer_norm
    attention: conv2d, batch_norm, conv2d, batch_norm, conv2d, batch_norm, cat, cat, cat, \
linear, linear, linear, scaled_dot_product_attention, linear
    add
    layer_norm
    mlp: linear, gelu, linear
    add
  output_head: layer_norm, linear
"""

import torch
from torch import Tensor, nn


class ConvEmbed(nn.Module):
    def __init__(self, inside: int, dim: int, patch: int, stride: int) -> None:
        super().__init__()
        self.proj = nn.Conv2d(inside, dim, patch, stride, patch // 2)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        x = self.proj(x)
        B, C, H, W = x.shape
        x = self.norm(x.flatten(2).transpose(1, 2))
        return x.transpose(1, 2).reshape(B, C, H, W)


class Attention(nn.Module):
    def __init__(self, dim: int, num_heads: int, with_cls_token: bool) -> None:
        super().__init__()
        self.num_heads, self.scale, self.with_cls_token = num_heads, dim**-0.5, with_cls_token
        self.conv_proj_q = self.depthwise(dim, 1)
        self.conv_proj_k = self.depthwise(dim, 2)
        self.conv_proj_v = self.depthwise(dim, 2)
        self.proj_q, self.proj_k, self.proj_v = (nn.Linear(dim, dim, bias=False) for _ in "qkv")
        self.proj = nn.Linear(dim, dim)

    def depthwise(self, dim: int, stride: int) -> nn.Sequential:
        conv = nn.Conv2d(dim, dim, 3, stride, padding=1, groups=dim, bias=False)
        return nn.Sequential(conv, nn.BatchNorm2d(dim))

    def forward_conv(self, x: Tensor, h: int, w: int) -> tuple[Tensor, Tensor, Tensor]:
        cls_token, x = x.split([int(self.with_cls_token), h * w], dim=1)
        x = x.transpose(1, 2).reshape(x.shape[0], -1, h, w)
        q = self.conv_proj_q(x).flatten(2).transpose(1, 2)
        k = self.conv_proj_k(x).flatten(2).transpose(1, 2)
        v = self.conv_proj_v(x).flatten(2).transpose(1, 2)
        if self.with_cls_token:
            q = torch.cat((cls_token, q), dim=1)
            k = torch.cat((cls_token, k), dim=1)
            v = torch.cat((cls_token, v), dim=1)
        return q, k, v

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x: Tensor, h: int, w: int) -> Tensor:
        q, k, v = self.forward_conv(x, h, w)
        q, k, v = (self.heads(y) for y in (self.proj_q(q), self.proj_k(k), self.proj_v(v)))
        attn = torch.einsum("bhlk,bhtk->bhlt", q, k) * self.scale
        x = torch.einsum("bhlt,bhtv->bhlv", torch.softmax(attn, dim=-1), v)
        return self.proj(x.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, dim: int, num_heads: int, with_cls_token: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, num_heads, with_cls_token)
        self.mlp = Mlp(dim)

    def forward(self, x: Tensor, h: int, w: int) -> Tensor:
        x = x + self.attn(self.norm1(x), h, w)
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, inside: int, dim: int, patch: int, stride: int, depth: int, cls: bool):
        super().__init__()
        self.patch_embed = ConvEmbed(inside, dim, patch, stride)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim)) if cls else None
        self.blocks = nn.ModuleList(Block(dim, 2, cls) for _ in range(depth))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.patch_embed(x)
        B, C, H, W = x.shape
        x = x.flatten(2).transpose(1, 2)
        if self.cls_token is not None:
            x = torch.cat((self.cls_token.expand(B, -1, -1), x), dim=1)
        for block in self.blocks:
            x = block(x, H, W)
        cls_tokens, x = x.split([x.shape[1] - H * W, H * W], dim=1)
        return x.transpose(1, 2).reshape(B, C, H, W), cls_tokens


class Model(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.stage0 = VisionTransformer(3, dim, 7, 4, 1, False)
        self.stage1 = VisionTransformer(dim, 2 * dim, 3, 2, 2, True)
        self.norm = nn.LayerNorm(2 * dim)
        self.head = nn.Linear(2 * dim, 5)

    def forward(self, x: Tensor) -> Tensor:
        x, _ = self.stage0(x)
        x, cls_tokens = self.stage1(x)
        return self.head(self.norm(cls_tokens).squeeze(1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs() -> list[int]:
    return [8]
