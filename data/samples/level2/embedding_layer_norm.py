"""Token and position embeddings, added and normalised: how a text encoder begins."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 16
SEQ_LEN = 128
VOCAB_SIZE = 10000
MAX_POSITIONS = 512
DIM = 512


class Model(nn.Module):
    def __init__(self, vocab_size: int, max_positions: int, dim: int):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, dim)
        self.position_embedding = nn.Embedding(max_positions, dim)
        self.norm = nn.LayerNorm(dim, eps=1e-12)

    def forward(self, input_ids: Tensor) -> Tensor:
        positions = torch.arange(input_ids.size(1), device=input_ids.device)
        embeddings = self.token_embedding(input_ids) + self.position_embedding(positions)
        return self.norm(embeddings)


def get_inputs():
    return [torch.randint(0, VOCAB_SIZE, (BATCH_SIZE, SEQ_LEN))]


def get_init_inputs():
    return [VOCAB_SIZE, MAX_POSITIONS, DIM]
