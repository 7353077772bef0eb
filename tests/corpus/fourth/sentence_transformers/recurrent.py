"""A sentence encoder of sentence-transformers without a transformer: word vectors, a bidirectional
LSTM, pooling by mean and maximum over the words that are there, a dense layer, unit length."""

import torch
from sentence_transformers import SentenceTransformer, models
from sentence_transformers.models.tokenizer import WhitespaceTokenizer


class Model(torch.nn.Module):
    def __init__(self, words, dim, hidden):
        super().__init__()
        tokenizer = WhitespaceTokenizer(vocab=[f"word{i}" for i in range(words)])
        vectors = models.WordEmbeddings(tokenizer, torch.randn(words, dim))
        lstm = models.LSTM(dim, hidden, num_layers=2, bidirectional=True)
        pooling = models.Pooling(
            2 * hidden, pooling_mode_mean_tokens=True, pooling_mode_max_tokens=True
        )
        dense = models.Dense(4 * hidden, 128)
        self.net = SentenceTransformer(
            modules=[vectors, lstm, pooling, dense, models.Normalize()], device="cpu"
        )

    def forward(self, tokens, mask):
        lengths = mask.sum(dim=1)
        features = {"input_ids": tokens, "attention_mask": mask, "sentence_lengths": lengths}
        return self.net(features)["sentence_embedding"]


def get_inputs():
    mask = torch.ones(4, 20, dtype=torch.long)
    mask[1, 14:] = 0
    mask[2, 7:] = 0
    return [torch.randint(0, 1000, (4, 20)), mask]


def get_init_inputs():
    return [1000, 100, 96]
