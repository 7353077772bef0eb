"""ChromBPNet: a model of chromatin and a model of the enzyme's bias, summed, on DNA."""

import torch
from chrombpnet.bpnet import BPNet
from torch import nn


class Model(nn.Module):
    def __init__(self, filters, bias_filters, layers):
        super().__init__()
        self.accessibility = BPNet(out_dim=1000, n_filters=filters, n_layers=layers)
        self.bias = BPNet(out_dim=1000, n_filters=bias_filters, n_layers=4)

    def forward(self, dna):
        profile, counts = self.accessibility(dna)
        bias_profile, bias_counts = self.bias(dna)
        profile = profile.squeeze(1) + bias_profile.squeeze(1)
        counts = torch.logsumexp(torch.cat([counts, bias_counts], -1), -1, keepdim=True)
        return profile.softmax(-1) * counts.exp(), counts


def get_inputs():
    dna = torch.randint(0, 4, (2, 2114))
    return [nn.functional.one_hot(dna, 4).float().transpose(1, 2)]


def get_init_inputs():
    return [256, 64, 8]
