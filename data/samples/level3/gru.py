"""Bidirectional GRU tagger: a label for every token from what comes before and after it."""

import torch
from torch import Tensor, nn

BATCH_SIZE = 8
SEQ_LEN = 64
VOCAB_SIZE = 4000
EMBEDDING_DIM = 128
HIDDEN_SIZE = 192
NUM_TAGS = 17


class Model(nn.Module):
    def __init__(self, vocab_size: int, embedding_dim: int, hidden_size: int, num_tags: int):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.gru = nn.GRU(embedding_dim, hidden_size, batch_first=True, bidirectional=True)
        self.tagger = nn.Linear(2 * hidden_size, num_tags)

    def forward(self, tokens: Tensor) -> Tensor:
        output, _ = self.gru(self.embedding(tokens))
        return torch.log_softmax(self.tagger(output), dim=-1)


def get_inputs():
    return [torch.randint(0, VOCAB_SIZE, (BATCH_SIZE, SEQ_LEN))]


def get_init_inputs():
    return [VOCAB_SIZE, EMBEDDING_DIM, HIDDEN_SIZE, NUM_TAGS]
