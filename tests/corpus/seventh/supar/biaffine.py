"""SuPar's biaffine parser: words and characters through bidirectional LSTMs; scores of every arc
and of its relations."""

import torch
from supar.models.dep import BiaffineDependencyModel


class Model(torch.nn.Module):
    def __init__(self, words, characters, relations):
        super().__init__()
        self.model = BiaffineDependencyModel(
            n_words=words,
            n_rels=relations,
            n_chars=characters,
            feat=["char"],
            n_lstm_hidden=200,
            n_lstm_layers=2,
            n_arc_mlp=200,
        )

    def forward(self, words, characters):
        return self.model(words, [characters])


def get_inputs():
    return [torch.randint(2, 2000, (4, 24)), torch.randint(1, 80, (4, 24, 9))]


def get_init_inputs():
    return [2000, 80, 40]
