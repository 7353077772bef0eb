"""BERT: norms after the residuals, three embeddings, a pooler (Devlin et al., 2019).

bert (model)
  bert_embeddings: embedding, embedding, add, embedding, add, layer_norm
  2 x bert_layer (layer)
    bert_attention: linear, linear, linear, scaled_dot_product_attention, linear, add, layer_norm
    bert_intermediate: linear, gelu
    bert_output: linear, add, layer_norm
  bert_pooler: linear, tanh
"""

import math

import torch
from torch import Tensor, nn


class BertEmbeddings(nn.Module):
    def __init__(self, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size, padding_idx=0)
        self.position_embeddings = nn.Embedding(12, hidden_size)
        self.token_type_embeddings = nn.Embedding(2, hidden_size)
        self.LayerNorm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.register_buffer("position_ids", torch.arange(12).expand((1, -1)))

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        embeddings = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids)
        position_ids = self.position_ids[:, : input_ids.shape[1]]
        return self.LayerNorm(embeddings + self.position_embeddings(position_ids))


class BertSelfAttention(nn.Module):
    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()
        self.heads, self.head_size = heads, hidden_size // heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)

    def transpose_for_scores(self, x: Tensor) -> Tensor:
        return x.view(x.shape[0], -1, self.heads, self.head_size).permute(0, 2, 1, 3)

    def forward(self, hidden_states: Tensor) -> Tensor:
        query = self.transpose_for_scores(self.query(hidden_states))
        key = self.transpose_for_scores(self.key(hidden_states))
        value = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        context = torch.matmul(nn.functional.softmax(scores, dim=-1), value)
        return context.permute(0, 2, 1, 3).contiguous().view(hidden_states.shape)


class BertSelfOutput(nn.Module):
    def __init__(self, inside: int, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inside, hidden_size)
        self.LayerNorm = nn.LayerNorm(hidden_size, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(hidden_states)) + input_tensor)


class BertAttention(nn.Module):
    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.self = BertSelfAttention(hidden_size, 4)
        self.output = BertSelfOutput(hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.output(self.self(hidden_states), hidden_states)


class BertIntermediate(nn.Module):
    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, 4 * hidden_size)
        self.intermediate_act_fn = nn.GELU()

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.intermediate_act_fn(self.dense(hidden_states))


class BertOutput(BertSelfOutput):
    pass


class BertLayer(nn.Module):
    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.attention = BertAttention(hidden_size)
        self.intermediate = BertIntermediate(hidden_size)
        self.output = BertOutput(4 * hidden_size, hidden_size)

    def forward(self, hidden_states: Tensor) -> Tensor:
        attention_output = self.attention(hidden_states)
        return self.output(self.intermediate(attention_output), attention_output)


class BertEncoder(nn.Module):
    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.layer = nn.ModuleList(BertLayer(hidden_size) for _ in range(2))

    def forward(self, hidden_states: Tensor) -> Tensor:
        for layer_module in self.layer:
            hidden_states = layer_module(hidden_states)
        return hidden_states


class BertPooler(nn.Module):
    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.activation = nn.Tanh()

    def forward(self, hidden_states: Tensor) -> Tensor:
        return self.activation(self.dense(hidden_states[:, 0]))


class Model(nn.Module):
    def __init__(self, vocab_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embeddings = BertEmbeddings(vocab_size, hidden_size)
        self.encoder = BertEncoder(hidden_size)
        self.pooler = BertPooler(hidden_size)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor) -> Tensor:
        return self.pooler(self.encoder(self.embeddings(input_ids, token_type_ids)))


def get_inputs() -> list[Tensor]:
    return [torch.randint(1, 20, (2, 7)), torch.randint(0, 2, (2, 7))]


def get_init_inputs() -> list[int]:
    return [20, 16]
