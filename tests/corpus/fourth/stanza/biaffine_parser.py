"""A dependency parser on stanza's layers: a highway LSTM in both directions over packed sentences
of several lengths, deep biaffine scorers for arcs and their labels, distances as a further
score."""

import torch
from stanza.models.common.biaffine import DeepBiaffineScorer
from stanza.models.common.hlstm import HighwayLSTM
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Model(nn.Module):
    def __init__(self, words, dim, hidden, labels):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=0)
        self.lstm = HighwayLSTM(
            dim, hidden, num_layers=2, bidirectional=True, batch_first=True, highway_func=torch.tanh
        )
        self.arc = DeepBiaffineScorer(2 * hidden, 2 * hidden, hidden, 1, pairwise=True)
        self.label = DeepBiaffineScorer(2 * hidden, 2 * hidden, hidden, labels, pairwise=True)
        self.distance = DeepBiaffineScorer(2 * hidden, 2 * hidden, hidden, 1, pairwise=True)
        for name, weight in self.named_parameters():
            if name.endswith("W_bilin.weight"):  # stanza starts them at zero
                nn.init.normal_(weight, std=0.02)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True)
        seen = pad_packed_sequence(self.lstm(packed, lengths)[0], batch_first=True)[0]
        place = torch.arange(seen.shape[1])
        far = (place[None, :, None] - place[None, None, :]).abs().float()
        expected = 1 + nn.functional.softplus(self.distance(seen, seen).squeeze(3))
        arcs = self.arc(seen, seen).squeeze(3) - (far - expected).square().div(2).log1p()
        arcs = arcs.masked_fill((place >= lengths[:, None])[:, None], -1e9)
        return arcs.log_softmax(dim=2), self.label(seen, seen)


def get_inputs():
    words = torch.randint(1, 800, (3, 14))
    words[1, 10:] = 0
    words[2, 6:] = 0
    return [words, torch.tensor([14, 10, 6])]


def get_init_inputs():
    return [800, 100, 128, 12]
