"""gpt-oss: sparse mixture of experts, grouped-query attention with sinks, alternating windows.

The architecture of OpenAI's open-weight language models, in bfloat16 with biases on every
projection. `CONFIG` is a small configuration that runs anywhere; `PUBLISHED_20B` holds the sizes
of gpt-oss-20b, so `CONFIG = PUBLISHED_20B` is the real model.

Two things differ from the published implementation, neither of them in any weight's shape:
rotary frequencies are the plain ones (YaRN's stretching to long contexts is left out), and every
expert sees every token, weighted by zero where the router did not choose it, which keeps the
program free of control flow that depends on values.
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
    context_length: int
    rope_theta: float
    swiglu_alpha: float
    swiglu_limit: float
    norm_eps: float


SMALL = Config(
    vocab_size=1024,
    hidden_size=256,
    num_layers=4,
    num_heads=8,
    num_kv_heads=2,
    head_dim=32,
    intermediate_size=256,
    num_experts=8,
    experts_per_token=2,
    sliding_window=16,
    context_length=64,
    rope_theta=150000.0,
    swiglu_alpha=1.702,
    swiglu_limit=7.0,
    norm_eps=1e-5,
)

PUBLISHED_20B = Config(
    vocab_size=201088,
    hidden_size=2880,
    num_layers=24,
    num_heads=64,
    num_kv_heads=8,
    head_dim=64,
    intermediate_size=2880,
    num_experts=32,
    experts_per_token=4,
    sliding_window=128,
    context_length=4096,
    rope_theta=150000.0,
    swiglu_alpha=1.702,
    swiglu_limit=7.0,
    norm_eps=1e-5,
)

CONFIG = SMALL
BATCH_SIZE = 2
SEQ_LEN = 64
DTYPE = torch.bfloat16


class RMSNorm(nn.Module):
    """Computed in float32, with a float32 weight, whatever the dtype of the activations."""

    def __init__(self, hidden_size: int, eps: float):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (h * self.weight).to(x.dtype)


class RotaryEmbedding(nn.Module):
    """Rotates the two halves of each head against each other by a position-dependent angle."""

    def __init__(self, head_dim: int, context_length: int, theta: float):
        super().__init__()
        frequencies = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        angles = torch.outer(torch.arange(context_length, dtype=torch.float32), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotate(self, x: Tensor) -> Tensor:
        seq_len = x.shape[1]
        cos = self.cos[:seq_len, None, :].to(x.dtype)
        sin = self.sin[:seq_len, None, :].to(x.dtype)
        first, second = x.chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)

    def forward(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        return self.rotate(query), self.rotate(key)


class SinkAttention(nn.Module):
    """Causal grouped-query attention whose heads can also attend to nothing.

    Each head owns one logit, its sink. It joins the scores in the softmax, takes its share of the
    probability and is dropped, so that a head's weights over the keys sum to less than one.
    """

    def __init__(self, num_heads: int, num_kv_heads: int, head_dim: int, window: int | None):
        super().__init__()
        self.num_kv_heads = num_kv_heads
        self.group_size = num_heads // num_kv_heads
        self.scale = 1.0 / math.sqrt(head_dim)
        self.window = window
        self.sinks = nn.Parameter(torch.randn(num_heads, dtype=DTYPE))

    def hidden_positions(self, seq_len: int, device: torch.device) -> Tensor:
        """True where a query (row) must not see a key (column)."""
        position = torch.arange(seq_len, device=device)
        distance = position[:, None] - position[None, :]
        hidden = distance < 0
        if self.window is not None:
            hidden = hidden | (distance >= self.window)
        return hidden

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        batch_size, seq_len, _, head_dim = query.shape
        query = query.view(batch_size, seq_len, self.num_kv_heads, self.group_size, head_dim)

        scores = torch.einsum("bqhgd,bkhd->bhgqk", query, key) * self.scale
        hidden = self.hidden_positions(seq_len, query.device)
        scores = scores.masked_fill(hidden, float("-inf"))

        sinks = self.sinks.view(1, self.num_kv_heads, self.group_size, 1, 1)
        sinks = sinks.expand(batch_size, -1, -1, seq_len, -1)
        weights = torch.softmax(torch.cat((scores, sinks), dim=-1), dim=-1)[..., :-1]

        out = torch.einsum("bhgqk,bkhd->bqhgd", weights, value)
        return out.reshape(batch_size, seq_len, -1)


class Attention(nn.Module):
    def __init__(self, config: Config, window: int | None):
        super().__init__()
        self.head_dim = config.head_dim
        self.q_size = config.num_heads * config.head_dim
        self.kv_size = config.num_kv_heads * config.head_dim
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.qkv = nn.Linear(config.hidden_size, self.q_size + 2 * self.kv_size, dtype=DTYPE)
        self.rope = RotaryEmbedding(config.head_dim, config.context_length, config.rope_theta)
        self.sdpa = SinkAttention(config.num_heads, config.num_kv_heads, config.head_dim, window)
        self.out = nn.Linear(self.q_size, config.hidden_size, dtype=DTYPE)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.norm(x))
        query, key, value = qkv.split((self.q_size, self.kv_size, self.kv_size), dim=-1)
        query = query.unflatten(-1, (-1, self.head_dim))
        key = key.unflatten(-1, (-1, self.head_dim))
        value = value.unflatten(-1, (-1, self.head_dim))
        query, key = self.rope(query, key)
        return x + self.out(self.sdpa(query, key, value))


class SwiGLU(nn.Module):
    """Gated activation over interleaved gate and up channels, clamped so bfloat16 stays sound."""

    def __init__(self, alpha: float, limit: float):
        super().__init__()
        self.alpha = alpha
        self.limit = limit

    def forward(self, x: Tensor) -> Tensor:
        gate, up = x[..., ::2], x[..., 1::2]
        gate = gate.clamp(max=self.limit)
        up = up.clamp(min=-self.limit, max=self.limit)
        return (up + 1) * (gate * torch.sigmoid(self.alpha * gate))


class ExpertLinear(nn.Module):
    """One linear layer an expert, all of them stacked into a single weight."""

    def __init__(self, num_experts: int, in_features: int, out_features: int):
        super().__init__()
        weight = torch.randn(num_experts, out_features, in_features, dtype=DTYPE)
        self.weight = nn.Parameter(weight / math.sqrt(in_features))
        self.bias = nn.Parameter(0.02 * torch.randn(num_experts, out_features, dtype=DTYPE))

    def forward(self, x: Tensor) -> Tensor:
        """[tokens, experts, in_features] -> [tokens, experts, out_features]"""
        return torch.einsum("tei,eoi->teo", x, self.weight) + self.bias


class MixtureOfExperts(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        hidden_size, intermediate_size = config.hidden_size, config.intermediate_size
        self.num_experts = config.num_experts
        self.experts_per_token = config.experts_per_token
        self.norm = RMSNorm(hidden_size, config.norm_eps)
        self.router = nn.Linear(hidden_size, config.num_experts, dtype=DTYPE)
        self.gate_up = ExpertLinear(config.num_experts, hidden_size, 2 * intermediate_size)
        self.swiglu = SwiGLU(config.swiglu_alpha, config.swiglu_limit)
        self.down = ExpertLinear(config.num_experts, intermediate_size, hidden_size)

    def route(self, tokens: Tensor) -> Tensor:
        """How much each token listens to each expert: a softmax over its top k, zero elsewhere."""
        logits = self.router(tokens)
        top_logits, top_experts = torch.topk(logits, self.experts_per_token, dim=-1)
        return torch.zeros_like(logits).scatter(-1, top_experts, top_logits.softmax(dim=-1))

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.norm(x).flatten(0, 1)
        routing = self.route(tokens)
        expert_inputs = tokens[:, None, :].expand(-1, self.num_experts, -1)
        expert_outputs = self.down(self.swiglu(self.gate_up(expert_inputs)))
        mixed = torch.einsum("teh,te->th", expert_outputs, routing)
        return x + mixed.view_as(x)


class TransformerBlock(nn.Module):
    def __init__(self, config: Config, layer_index: int):
        super().__init__()
        window = config.sliding_window if layer_index % 2 == 0 else None
        self.attn = Attention(config, window)
        self.moe = MixtureOfExperts(config)

    def forward(self, x: Tensor) -> Tensor:
        return self.moe(self.attn(x))


class OutputHead(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.norm = RMSNorm(config.hidden_size, config.norm_eps)
        self.unembedding = nn.Linear(config.hidden_size, config.vocab_size, bias=False, dtype=DTYPE)

    def forward(self, x: Tensor) -> Tensor:
        return self.unembedding(self.norm(x))


class Model(nn.Module):
    def __init__(self, *values: int | float):
        """Takes the values of a Config, in the order of its fields."""
        super().__init__()
        config = Config(*values)
        self.embedding = nn.Embedding(config.vocab_size, config.hidden_size, dtype=DTYPE)
        self.layers = nn.ModuleList(TransformerBlock(config, i) for i in range(config.num_layers))
        self.output_head = OutputHead(config)

    def forward(self, token_ids: Tensor) -> Tensor:
        """[batch, seq] token ids, the first at position 0 -> [batch, seq, vocab] logits"""
        x = self.embedding(token_ids)
        for layer in self.layers:
            x = layer(x)
        return self.output_head(x)


def get_inputs():
    return [torch.randint(0, CONFIG.vocab_size, (BATCH_SIZE, SEQ_LEN))]


def get_init_inputs():
    return list(astuple(CONFIG))
