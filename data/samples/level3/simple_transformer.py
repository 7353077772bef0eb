"""Transformer encoder that classifies padded token sequences, attention written out by hand.

Post-norm, as the first Transformers were, with sinusoidal positions. The second input marks real
tokens (True) and padding (False); padding is neither attended to nor averaged into the result.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

VOCAB_SIZE = 5000
MAX_LEN = 256
D_MODEL = 256
NUM_HEADS = 8
D_FF = 1024
NUM_LAYERS = 3
NUM_CLASSES = 20

BATCH_SIZE = 4
SEQ_LEN = 96


def sinusoids(max_len: int, d_model: int) -> Tensor:
    position = torch.arange(max_len).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    table = torch.zeros(max_len, d_model)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    return table


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = d_model // num_heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def split_heads(self, x: Tensor) -> Tensor:
        batch_size, seq_len, _ = x.shape
        return x.view(batch_size, seq_len, self.num_heads, self.head_dim).permute(0, 2, 1, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        query = self.split_heads(self.query(x))
        key = self.split_heads(self.key(x))
        value = self.split_heads(self.value(x))

        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.head_dim)
        scores = scores.masked_fill(~mask[:, None, None, :], -1e9)
        weights = F.softmax(scores, dim=-1)

        context = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous()
        return self.output(context.view(x.shape))


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
        )
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm1(x + self.dropout(self.attention(x, mask)))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class Model(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        max_len: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        num_classes: int,
    ):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("positions", sinusoids(max_len, d_model))
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, num_heads, d_ff) for _ in range(num_layers)
        )
        self.classifier = nn.Linear(d_model, num_classes)

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        x = self.embedding(tokens) * self.scale + self.positions[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        real = mask.unsqueeze(-1).to(x.dtype)
        pooled = (x * real).sum(dim=1) / real.sum(dim=1)
        return self.classifier(pooled)


def get_inputs():
    tokens = torch.randint(0, VOCAB_SIZE, (BATCH_SIZE, SEQ_LEN))
    lengths = torch.randint(SEQ_LEN // 2, SEQ_LEN + 1, (BATCH_SIZE, 1))
    return [tokens, torch.arange(SEQ_LEN) < lengths]


def get_init_inputs():
    return [VOCAB_SIZE, MAX_LEN, D_MODEL, NUM_HEADS, D_FF, NUM_LAYERS, NUM_CLASSES]
