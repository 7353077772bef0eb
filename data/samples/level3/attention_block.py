"""Causal self-attention block, softmax and mask written by hand, with pre-norm and residual."""

import math

import torch
from torch import Tensor, nn

BATCH_SIZE = 4
SEQ_LEN = 128
MAX_SEQ_LEN = 256
N_EMBD = 384
N_HEAD = 6


class Model(nn.Module):
    def __init__(self, n_embd: int, n_head: int, max_seq_len: int):
        super().__init__()
        self.n_head = n_head
        self.norm = nn.LayerNorm(n_embd)
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.attn_dropout = nn.Dropout(0.1)
        self.resid_dropout = nn.Dropout(0.1)
        causal = torch.tril(torch.ones(max_seq_len, max_seq_len))
        self.register_buffer("mask", causal.view(1, 1, max_seq_len, max_seq_len))

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.qkv(self.norm(x)).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)

        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(C // self.n_head))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = torch.exp(att - att.amax(dim=-1, keepdim=True))
        att = att / att.sum(dim=-1, keepdim=True)
        y = self.attn_dropout(att) @ v

        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return x + self.resid_dropout(self.proj(y))


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, N_EMBD)]


def get_init_inputs():
    return [N_EMBD, N_HEAD, MAX_SEQ_LEN]
