"""fastai's TabularModel: embedded categories and normalised numbers of a table's rows."""

import torch
from fastai.tabular.model import TabularModel


class Model(torch.nn.Module):
    def __init__(self, categories, numbers, classes):
        super().__init__()
        self.net = TabularModel(
            categories, n_cont=numbers, out_sz=classes, layers=[200, 100], ps=0.1, embed_p=0.04
        )

    def forward(self, kinds, values):
        return self.net(kinds, values)


def get_inputs():
    kinds = torch.stack([torch.randint(0, n, (64,)) for n in (10, 17, 8, 16)], dim=1)
    return [kinds, torch.randn(64, 3)]


def get_init_inputs():
    return [[(10, 6), (17, 8), (8, 5), (16, 8)], 3, 2]
