import torch
import torch.nn.functional as F
from torch import nn


class Stem(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, kernel_size=4, stride=4, bias=False)
        self.bn = nn.BatchNorm2d(32)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class RMSNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(32))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.softmax(q @ k.transpose(-2, -1) * 8**-0.5, dim=-1)
        return self.out((scores @ v).transpose(1, 2).reshape(batch, tokens, 32))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(32, 64, bias=False)
        self.up = nn.Linear(32, 64, bias=False)
        self.down = nn.Linear(64, 32, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = RMSNorm()
        self.attention = Attention()
        self.norm2 = RMSNorm()
        self.feed_forward = FeedForward()

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Model(nn.Module):
    """A convolution with a batch norm, and two blocks with a spelled attention and a SwiGLU."""

    def __init__(self):
        super().__init__()
        self.stem = Stem()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x):
        return self.blocks(self.stem(x).flatten(2).transpose(1, 2))


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]


def get_init_inputs():
    return []
