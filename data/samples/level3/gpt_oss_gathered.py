"""gpt-oss as its publisher spells it: experts gathered for each token, rotations stretched by YaRN.

The same architecture as `gpt_oss.py`, at a small configuration, with what that file leaves out: the
weights of the chosen experts are picked from their stacks for each token, and the angles of the
rotations are computed in the forward, stretched to contexts longer than those of the first
training. The sequence has no batch dimension, as when one prompt is read.
"""

import math
from dataclasses import astuple, dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Config:
    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    num_experts: int
    experts_per_token: int
    sliding_window: int
    initial_context_length: int
    rope_theta: float
    rope_scaling_factor: float
    rope_ntk_alpha: float
    rope_ntk_beta: float
    swiglu_limit: float


CONFIG = Config(
    vocab_size=1024,
    hidden_size=128,
    num_layers=4,
    num_heads=8,
    num_kv_heads=2,
    head_dim=32,
    intermediate_size=128,
    num_experts=8,
    experts_per_token=2,
    sliding_window=16,
    initial_context_length=4096,
    rope_theta=150000.0,
    rope_scaling_factor=32.0,
    rope_ntk_alpha=1.0,
    rope_ntk_beta=32.0,
    swiglu_limit=7.0,
)
SEQ_LEN = 48
DTYPE = torch.bfloat16


class RMSNorm(nn.Module):
    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(num_features, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        t = x.float()
        t = t * torch.rsqrt(torch.mean(t**2, dim=-1, keepdim=True) + self.eps)
        return (t * self.scale).to(x.dtype)


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    cos = cos[:, None, :].to(x.dtype)
    sin = sin[:, None, :].to(x.dtype)
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)


class RotaryEmbedding(nn.Module):
    """Rotary positions by YaRN (Peng et al., 2023).

    Slow frequencies are interpolated, fast ones kept, and those in between blended by a ramp; the
    `concentration` makes up for the softer attention over long contexts.
    """

    def __init__(self, config: Config):
        super().__init__()
        self.head_dim = config.head_dim
        self.base = config.rope_theta
        self.initial_context_length = config.initial_context_length
        self.scaling_factor = config.rope_scaling_factor
        self.ntk_alpha = config.rope_ntk_alpha
        self.ntk_beta = config.rope_ntk_beta

    def turning_at(self, rotations: float) -> float:
        """The dimension whose angle makes so many rotations within the first context."""
        wavelength = self.initial_context_length / (rotations * 2 * math.pi)
        return self.head_dim / 2 * math.log(wavelength) / math.log(self.base)

    def frequencies(self, device: torch.device) -> Tensor:
        half = self.head_dim // 2
        exponent = torch.arange(0, self.head_dim, 2, dtype=torch.float32, device=device)
        period = self.base ** (exponent / self.head_dim)
        low, high = self.turning_at(self.ntk_beta), self.turning_at(self.ntk_alpha)
        ramp = (torch.arange(half, dtype=torch.float32, device=device) - low) / (high - low)
        kept = 1 - ramp.clamp(0, 1)
        return (1.0 / (self.scaling_factor * period)) * (1 - kept) + (1.0 / period) * kept

    def table(self, num_tokens: int, device: torch.device) -> tuple[Tensor, Tensor]:
        concentration = 0.1 * math.log(self.scaling_factor) + 1.0
        position = torch.arange(num_tokens, dtype=torch.float32, device=device)
        angles = torch.einsum("i,j->ij", position, self.frequencies(device))
        return angles.cos() * concentration, angles.sin() * concentration

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        num_tokens = query.shape[0]
        cos, sin = self.table(num_tokens, query.device)
        query_heads = query.view(num_tokens, -1, self.head_dim)
        query = rotate_halves(query_heads, cos, sin).reshape(query.shape)
        key_heads = key.view(num_tokens, -1, self.head_dim)
        key = rotate_halves(key_heads, cos, sin).reshape(key.shape)
        return query, key


def attend(
    query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, scale: float, window: int
) -> Tensor:
    """Causal attention of grouped queries with a sink for each head; a window of 0 is no window."""
    num_tokens, num_groups, group_size, _ = query.shape
    key = key[:, :, None, :].expand(-1, -1, group_size, -1)
    value = value[:, :, None, :].expand(-1, -1, group_size, -1)
    sinks = sinks.reshape(num_groups, group_size, 1, 1).expand(-1, -1, num_tokens, -1)
    mask = torch.triu(query.new_full((num_tokens, num_tokens), -float("inf")), diagonal=1)
    if window > 0:
        mask = mask + torch.tril(mask.new_full((num_tokens, num_tokens), -float("inf")), -window)
    scores = torch.einsum("qhmd,khmd->hmqk", query, key) * scale
    scores = scores + mask[None, None, :, :]
    weights = torch.softmax(torch.cat((scores, sinks), dim=-1), dim=-1)[..., :-1]
    attended = torch.einsum("hmqk,khmd->qhmd", weights, value)
    return attended.reshape(num_tokens, -1)


class AttentionBlock(nn.Module):
    def __init__(self, config: Config, layer_index: int):
        super().__init__()
        self.head_dim = config.head_dim
        self.num_heads = config.num_heads
        self.num_kv_heads = config.num_kv_heads
        self.sliding_window = config.sliding_window if layer_index % 2 == 0 else 0
        self.scale = 1 / math.sqrt(config.head_dim)
        self.sinks = nn.Parameter(torch.randn(config.num_heads, dtype=DTYPE))
        self.norm = RMSNorm(config.hidden_size)
        qkv_size = config.head_dim * (config.num_heads + 2 * config.num_kv_heads)
        self.qkv = nn.Linear(config.hidden_size, qkv_size, dtype=DTYPE)
        self.out = nn.Linear(config.head_dim * config.num_heads, config.hidden_size, dtype=DTYPE)
        self.rope = RotaryEmbedding(config)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.norm(x))
        q_size, kv_size = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        q, k, v = qkv.split((q_size, kv_size, kv_size), dim=-1)
        group_size = self.num_heads // self.num_kv_heads
        q = q.view(-1, self.num_kv_heads, group_size, self.head_dim)
        k = k.view(-1, self.num_kv_heads, self.head_dim)
        v = v.view(-1, self.num_kv_heads, self.head_dim)
        q, k = self.rope(q, k)
        t = attend(q, k, v, self.sinks, self.scale, self.sliding_window)
        return x + self.out(t)


def swiglu(x: Tensor, limit: float, alpha: float = 1.702) -> Tensor:
    """Gate and linear channels lie side by side; both are limited, the gate from above alone."""
    gate, linear = x[..., ::2], x[..., 1::2]
    gate = gate.clamp(max=limit)
    linear = linear.clamp(min=-limit, max=limit)
    return gate * torch.sigmoid(alpha * gate) * (linear + 1)


def stacked(*size: int) -> nn.Parameter:
    """One matrix or vector an expert."""
    return nn.Parameter((torch.randn(size) / math.sqrt(size[-1])).to(DTYPE))


class MLPBlock(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        hidden_size, intermediate_size = config.hidden_size, config.intermediate_size
        self.experts_per_token = config.experts_per_token
        self.swiglu_limit = config.swiglu_limit
        self.norm = RMSNorm(hidden_size)
        self.gate = nn.Linear(hidden_size, config.num_experts, dtype=DTYPE)
        self.mlp1_weight = stacked(config.num_experts, intermediate_size * 2, hidden_size)
        self.mlp1_bias = stacked(config.num_experts, intermediate_size * 2)
        self.mlp2_weight = stacked(config.num_experts, hidden_size, intermediate_size)
        self.mlp2_bias = stacked(config.num_experts, hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        t = self.norm(x)
        chosen = torch.topk(self.gate(t), k=self.experts_per_token, dim=-1, sorted=True)
        expert_weights = torch.softmax(chosen.values, dim=1)
        expert_indices = chosen.indices

        mlp1_weight = self.mlp1_weight[expert_indices, ...]
        mlp1_bias = self.mlp1_bias[expert_indices, ...]
        t = torch.einsum("beck,bk->bec", mlp1_weight, t) + mlp1_bias
        t = swiglu(t, limit=self.swiglu_limit)

        mlp2_weight = self.mlp2_weight[expert_indices, ...]
        mlp2_bias = self.mlp2_bias[expert_indices, ...]
        t = torch.einsum("beck,bek->bec", mlp2_weight, t) + mlp2_bias

        t = torch.einsum("bec,be->bc", t, expert_weights)
        return x + t


class TransformerBlock(nn.Module):
    def __init__(self, config: Config, layer_index: int):
        super().__init__()
        self.attn = AttentionBlock(config, layer_index)
        self.mlp = MLPBlock(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(self.attn(x))


class Model(nn.Module):
    def __init__(self, *values: int | float):
        """Takes the values of a Config, in the order of its fields."""
        super().__init__()
        config = Config(*values)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size, dtype=DTYPE)
        self.block = nn.ModuleList(TransformerBlock(config, i) for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size)
        self.unembedding = nn.Linear(config.hidden_size, config.vocab_size, bias=False, dtype=DTYPE)

    def forward(self, token_ids: Tensor) -> Tensor:
        """[tokens] token ids, the first at position 0 -> [tokens, vocab] logits"""
        x = self.embedding(token_ids)
        for block in self.block:
            x = block(x)
        return self.unembedding(self.norm(x))


def get_inputs():
    return [torch.randint(0, CONFIG.vocab_size, (SEQ_LEN,))]


def get_init_inputs():
    return list(astuple(CONFIG))
