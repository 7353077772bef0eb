"""Sequence tagging with bi-lstm-crf: packed sentences through a BiLSTM, then Viterbi decoding."""

import torch
from bi_lstm_crf import BiRnnCrf


class Model(torch.nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.model = BiRnnCrf(words, tags, embedding_dim=100, hidden_dim=128)

    def forward(self, sentences):
        scores, tags = self.model(sentences)
        return scores, tags


def get_inputs():
    sentences = torch.randint(1, 500, (4, 20))
    for row, length in enumerate([20, 16, 11, 7]):
        sentences[row, length:] = 0
    return [sentences]


def get_init_inputs():
    return [500, 9]
