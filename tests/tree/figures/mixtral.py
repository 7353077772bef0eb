"""Mixtral: experts as modules of their own, grouped-query attention, RoPE (Jiang et al., 2024).

mixtral (model)
  embedding
  rope_table
  2 x mixtral_decoder_layer (layer)
    rms_norm
    mixtral_attention: linear, linear, linear, rope, scaled_dot_product_attention, linear
    add
    rms_norm
    linear_topk_router: linear, topk_router
    4 x mixtral_block_sparse_top2_mlp: linear, linear, swiglu, linear
    expert_combine
    add
  output_head: rms_norm, linear
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HIDDEN, HEADS, KV_HEADS, HEAD_DIM = 16, 4, 2, 4


class MixtralRMSNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, hidden_states: Tensor) -> Tensor:
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + 1e-5))


class MixtralRotaryEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 1e4 ** (torch.arange(0, HEAD_DIM, 2) / HEAD_DIM))

    def forward(self, length: int) -> tuple[Tensor, Tensor]:
        freqs = torch.outer(torch.arange(length, device=self.inv_freq.device), self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def repeat_kv(x: Tensor, times: int) -> Tensor:
    B, heads, length, dim = x.shape
    return x[:, :, None].expand(-1, -1, times, -1, -1).reshape(B, heads * times, length, dim)


class MixtralAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj = nn.Linear(HIDDEN, HEADS * HEAD_DIM, bias=False)
        self.k_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.v_proj = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.o_proj = nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        B, L, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(B, L, HEADS, HEAD_DIM).transpose(1, 2)
        k = self.k_proj(hidden_states).view(B, L, KV_HEADS, HEAD_DIM).transpose(1, 2)
        v = self.v_proj(hidden_states).view(B, L, KV_HEADS, HEAD_DIM).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k, v = repeat_kv(k, HEADS // KV_HEADS), repeat_kv(v, HEADS // KV_HEADS)
        output = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(output.transpose(1, 2).contiguous().view(B, L, -1))


class MixtralBlockSparseTop2MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Linear(HIDDEN, 32, bias=False)
        self.w2 = nn.Linear(32, HIDDEN, bias=False)
        self.w3 = nn.Linear(HIDDEN, 32, bias=False)
        self.act_fn = nn.SiLU()

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.w2(self.act_fn(self.w1(hidden_states)) * self.w3(hidden_states))


class MixtralSparseMoeBlock(nn.Module):
    def __init__(self, num_experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(HIDDEN, num_experts, bias=False)
        self.experts = nn.ModuleList(MixtralBlockSparseTop2MLP() for _ in range(num_experts))

    def forward(self, hidden_states: Tensor) -> Tensor:
        router_logits = self.gate(hidden_states)
        routing_weights, chosen = torch.topk(F.softmax(router_logits, dim=-1), 2, dim=-1)
        routing_weights = routing_weights / routing_weights.sum(dim=-1, keepdim=True)
        weights = torch.zeros_like(router_logits).scatter(-1, chosen, routing_weights)
        final_hidden_states = torch.zeros_like(hidden_states)
        for index, expert in enumerate(self.experts):
            share = weights[..., index, None]
            final_hidden_states = final_hidden_states + expert(hidden_states) * share
        return final_hidden_states


class MixtralDecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = MixtralAttention()
        self.block_sparse_moe = MixtralSparseMoeBlock(num_experts=4)
        self.input_layernorm = MixtralRMSNorm()
        self.post_attention_layernorm = MixtralRMSNorm()

    def forward(self, hidden_states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        residual = hidden_states
        hidden_states = residual + self.self_attn(self.input_layernorm(residual), cos, sin)
        residual = hidden_states
        return residual + self.block_sparse_moe(self.post_attention_layernorm(residual))


class MixtralModel(nn.Module):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, HIDDEN)
        self.layers = nn.ModuleList(MixtralDecoderLayer() for _ in range(2))
        self.norm = MixtralRMSNorm()
        self.rotary_emb = MixtralRotaryEmbedding()

    def forward(self, input_ids: Tensor) -> Tensor:
        hidden_states = self.embed_tokens(input_ids)
        cos, sin = self.rotary_emb(input_ids.shape[1])
        for decoder_layer in self.layers:
            hidden_states = decoder_layer(hidden_states, cos, sin)
        return self.norm(hidden_states)


class Model(nn.Module):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.model = MixtralModel(vocab_size)
        self.lm_head = nn.Linear(HIDDEN, vocab_size, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.lm_head(self.model(input_ids))


def get_inputs() -> list[Tensor]:
    return [torch.randint(0, 20, (2, 6))]


def get_init_inputs() -> list[int]:
    return [20]
