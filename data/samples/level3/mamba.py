"""Mamba-like block: a gated state space layer whose linear recurrence is scanned in chunks.

Each head carries a state of [head_dim, state_dim] along the sequence,

    state[t] = exp(step[t] * A) * state[t - 1] + step[t] * outer(x[t], B[t])
    y[t] = state[t] @ C[t] + D * x[t]

with step, B and C computed from the input. The scan multiplies matrices within chunks, where all
pairs of positions meet at once, and walks from chunk to chunk with the states alone.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BATCH_SIZE = 2
SEQ_LEN = 128
CHUNK_LEN = 32
DIM = 128
NUM_HEADS = 8
HEAD_DIM = 32
STATE_DIM = 32
CONV_WIDTH = 4


def decay_between(log_decay: Tensor) -> Tensor:
    """[..., length] -> [..., length, length]: the decay from each position to each later one."""
    length = log_decay.shape[-1]
    total = torch.cumsum(log_decay, dim=-1)
    later = torch.ones(length, length, dtype=torch.bool, device=log_decay.device).triu(1)
    between = total[..., :, None] - total[..., None, :]
    return torch.exp(between.masked_fill(later, float("-inf")))


class Model(nn.Module):
    def __init__(
        self,
        dim: int,
        num_heads: int,
        head_dim: int,
        state_dim: int,
        conv_width: int,
        chunk_len: int,
    ):
        super().__init__()
        self.num_heads = num_heads
        self.state_dim = state_dim
        self.inner_dim = num_heads * head_dim
        self.conv_dim = self.inner_dim + 2 * state_dim
        self.chunk_len = chunk_len
        self.norm = nn.LayerNorm(dim)
        self.in_proj = nn.Linear(dim, self.inner_dim + self.conv_dim + num_heads, bias=False)
        self.conv = nn.Conv1d(
            self.conv_dim, self.conv_dim, conv_width, padding=conv_width - 1, groups=self.conv_dim
        )
        self.step_bias = nn.Parameter(torch.empty(num_heads).uniform_(-4.0, -1.0))
        self.A_log = nn.Parameter(torch.arange(1, num_heads + 1).float().log())
        self.D = nn.Parameter(torch.ones(num_heads))
        self.out_norm = nn.LayerNorm(self.inner_dim)
        self.out_proj = nn.Linear(self.inner_dim, dim, bias=False)

    def scan(self, x: Tensor, log_decay: Tensor, B: Tensor, C: Tensor) -> Tensor:
        """Runs the recurrence.

        x [batch, seq, heads, head_dim] comes multiplied by its step; log_decay is
        [batch, seq, heads]; B and C are [batch, seq, state_dim], shared by the heads.
        """
        x = x.unflatten(1, (-1, self.chunk_len))
        B = B.unflatten(1, (-1, self.chunk_len))
        C = C.unflatten(1, (-1, self.chunk_len))
        log_decay = log_decay.unflatten(1, (-1, self.chunk_len)).permute(0, 3, 1, 2)

        pairwise = decay_between(log_decay)
        scores = torch.einsum("bcls,bcms->bclm", C, B)[:, None] * pairwise
        within = torch.einsum("bhclm,bcmhd->bclhd", scores, x)

        total = torch.cumsum(log_decay, dim=-1)
        to_end = torch.exp(total[..., -1:] - total)
        contributed = torch.einsum("bcms,bhcm,bcmhd->bchds", B, to_end, x)

        chunk_decay = torch.exp(total[..., -1])
        state = torch.zeros_like(contributed[:, 0])
        entering = []
        for chunk in range(contributed.shape[1]):
            entering.append(state)
            state = state * chunk_decay[:, :, chunk, None, None] + contributed[:, chunk]
        carried = torch.einsum(
            "bcls,bchds,bhcl->bclhd", C, torch.stack(entering, dim=1), torch.exp(total)
        )
        return (within + carried).flatten(1, 2)

    def forward(self, u: Tensor) -> Tensor:
        """[batch, seq, dim] -> the same; seq is a multiple of the chunk length"""
        seq_len = u.shape[1]
        projected = self.in_proj(self.norm(u))
        z, xBC, step = projected.split([self.inner_dim, self.conv_dim, self.num_heads], dim=-1)
        xBC = F.silu(self.conv(xBC.transpose(1, 2))[..., :seq_len].transpose(1, 2))
        x, B, C = xBC.split([self.inner_dim, self.state_dim, self.state_dim], dim=-1)

        x = x.unflatten(-1, (self.num_heads, -1))
        step = F.softplus(step + self.step_bias)
        log_decay = -torch.exp(self.A_log) * step
        y = self.scan(x * step.unsqueeze(-1), log_decay, B, C)
        y = y + self.D.unsqueeze(-1) * x

        y = self.out_norm(y.flatten(2) * F.silu(z))
        return u + self.out_proj(y)


def get_inputs():
    return [torch.randn(BATCH_SIZE, SEQ_LEN, DIM)]


def get_init_inputs():
    return [DIM, NUM_HEADS, HEAD_DIM, STATE_DIM, CONV_WIDTH, CHUNK_LEN]
