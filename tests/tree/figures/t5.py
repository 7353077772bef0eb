"""T5: an encoder, and a decoder with cross-attention; positions as a bias (Raffel et al., 2020).

t5 (model)
  embedding
  t5_block (layer)
    t5_layer_self_attention: rms_norm, linear, linear, linear, relative_position_bias, \
scaled_dot_product_attention, linear, add
    t5_layer_ff: rms_norm, linear, relu, linear, add
  t5_block (layer)
    t5_layer_self_attention: rms_norm, linear, linear, linear, \
scaled_dot_product_attention, linear, add
    t5_layer_ff: rms_norm, linear, relu, linear, add
  rms_norm
  embedding
  t5_block (layer)
    t5_layer_self_attention: rms_norm, linear, linear, linear, relative_position_bias, \
scaled_dot_product_attention, linear, add
    t5_layer_cross_attention: rms_norm, linear, linear, linear, \
scaled_dot_product_attention, linear, add
    t5_layer_ff: rms_norm, linear, relu, linear, add
  t5_block (layer)
    t5_layer_self_attention: rms_norm, linear, linear, linear, \
scaled_dot_product_attention, linear, add
    t5_layer_cross_attention: rms_norm, linear, linear, linear, \
scaled_dot_product_attention, linear, add
    t5_layer_ff: rms_norm, linear, relu, linear, add
  output_head: rms_norm, mul, linear
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

DIM, HEADS, BUCKETS = 16, 4, 8


class T5LayerNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(DIM))

    def forward(self, hidden_states: Tensor) -> Tensor:
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + 1e-6))


class T5Attention(nn.Module):
    def __init__(self, causal: bool, has_relative_attention_bias: bool) -> None:
        super().__init__()
        self.causal = causal
        self.q, self.k, self.v, self.o = (nn.Linear(DIM, DIM, bias=False) for _ in "qkvo")
        if has_relative_attention_bias:
            self.relative_attention_bias = nn.Embedding(BUCKETS, HEADS)

    def relative_position_bucket(self, relative_position: Tensor) -> Tensor:
        buckets, start = BUCKETS, torch.zeros_like(relative_position)
        if self.causal:
            distance = -torch.min(relative_position, start)
        else:
            buckets = buckets // 2
            start = (relative_position > 0).to(torch.long) * buckets
            distance = relative_position.abs()
        exact = buckets // 2
        far = torch.log(distance.float() / exact) / math.log(16 / exact) * (buckets - exact)
        far = torch.min((exact + far).long(), torch.full_like(distance, buckets - 1))
        return start + torch.where(distance < exact, distance, far)

    def compute_bias(self, length: int) -> Tensor:
        position = torch.arange(length)
        bucket = self.relative_position_bucket(position[None, :] - position[:, None])
        return self.relative_attention_bias(bucket).permute(2, 0, 1).unsqueeze(0)

    def heads(self, states: Tensor) -> Tensor:
        return states.view(states.shape[0], -1, HEADS, DIM // HEADS).transpose(1, 2)

    def forward(
        self, hidden_states: Tensor, key_value_states: Tensor, position_bias: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        q = self.heads(self.q(hidden_states))
        k, v = self.heads(self.k(key_value_states)), self.heads(self.v(key_value_states))
        scores = torch.matmul(q, k.transpose(3, 2))
        if position_bias is None and hasattr(self, "relative_attention_bias"):
            position_bias = self.compute_bias(scores.shape[-1])
        if position_bias is not None:
            scores = scores + position_bias
        if self.causal:
            future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        output = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o(output.view(hidden_states.shape)), position_bias


class T5LayerSelfAttention(nn.Module):
    def __init__(self, causal: bool, first: bool) -> None:
        super().__init__()
        self.SelfAttention = T5Attention(causal, first)
        self.layer_norm = T5LayerNorm()

    def forward(self, hidden_states: Tensor, position_bias: Tensor | None) -> tuple[Tensor, Tensor]:
        normed = self.layer_norm(hidden_states)
        output, position_bias = self.SelfAttention(normed, normed, position_bias)
        return hidden_states + output, position_bias


class T5LayerCrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.EncDecAttention = T5Attention(False, False)
        self.layer_norm = T5LayerNorm()

    def forward(self, hidden_states: Tensor, key_value_states: Tensor) -> Tensor:
        normed = self.layer_norm(hidden_states)
        return hidden_states + self.EncDecAttention(normed, key_value_states, None)[0]


class T5DenseActDense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wi, self.wo = nn.Linear(DIM, 32, bias=False), nn.Linear(32, DIM, bias=False)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.wo(F.relu(self.wi(hidden_states)))


class T5LayerFF(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.DenseReluDense = T5DenseActDense()
        self.layer_norm = T5LayerNorm()

    def forward(self, hidden_states: Tensor) -> Tensor:
        return hidden_states + self.DenseReluDense(self.layer_norm(hidden_states))


class T5Block(nn.Module):
    def __init__(self, is_decoder: bool, first: bool) -> None:
        super().__init__()
        self.layer = nn.ModuleList([T5LayerSelfAttention(is_decoder, first)])
        if is_decoder:
            self.layer.append(T5LayerCrossAttention())
        self.layer.append(T5LayerFF())

    def forward(
        self, hidden_states: Tensor, position_bias: Tensor | None, encoded: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        hidden_states, position_bias = self.layer[0](hidden_states, position_bias)
        if encoded is not None:
            hidden_states = self.layer[1](hidden_states, encoded)
        return self.layer[-1](hidden_states), position_bias


class T5Stack(nn.Module):
    def __init__(self, embed_tokens: nn.Embedding, is_decoder: bool) -> None:
        super().__init__()
        self.embed_tokens = embed_tokens
        self.block = nn.ModuleList(T5Block(is_decoder, i == 0) for i in range(2))
        self.final_layer_norm = T5LayerNorm()

    def forward(self, input_ids: Tensor, encoded: Tensor | None = None) -> Tensor:
        hidden_states, position_bias = self.embed_tokens(input_ids), None
        for block in self.block:
            hidden_states, position_bias = block(hidden_states, position_bias, encoded)
        return self.final_layer_norm(hidden_states)


class Model(nn.Module):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.shared = nn.Embedding(vocab_size, DIM)
        self.encoder = T5Stack(self.shared, is_decoder=False)
        self.decoder = T5Stack(self.shared, is_decoder=True)
        self.lm_head = nn.Linear(DIM, vocab_size, bias=False)
        self.lm_head.weight = self.shared.weight

    def forward(self, input_ids: Tensor, decoder_input_ids: Tensor) -> Tensor:
        encoded = self.encoder(input_ids)
        return self.lm_head(self.decoder(decoder_input_ids, encoded) * DIM**-0.5)


def get_inputs() -> list[Tensor]:
    return [torch.randint(0, 20, (2, 7)), torch.randint(0, 20, (2, 5))]


def get_init_inputs() -> list[int]:
    return [20]
