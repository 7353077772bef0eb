"""A BiLSTM tagger whose tags pytorch-crf's CRF judges: the log likelihood of each sentence,
some of them padded."""

import torch
from torchcrf import CRF


class Model(torch.nn.Module):
    def __init__(self, vocabulary, hidden, tags):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, hidden)
        self.lstm = torch.nn.LSTM(hidden, hidden, bidirectional=True, batch_first=True)
        self.emit = torch.nn.Linear(2 * hidden, tags)
        self.crf = CRF(tags, batch_first=True)

    def forward(self, words, tags, lengths):
        emissions = self.emit(self.lstm(self.embed(words))[0])
        mask = torch.arange(words.shape[1]) < lengths[:, None]
        return self.crf(emissions, tags, mask=mask, reduction="none")


def get_inputs():
    return [
        torch.randint(0, 500, (4, 16)),
        torch.randint(0, 9, (4, 16)),
        torch.tensor([16, 11, 7, 3]),
    ]


def get_init_inputs():
    return [500, 48, 9]
