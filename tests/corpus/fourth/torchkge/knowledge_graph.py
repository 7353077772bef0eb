"""Three models of torchkge score the same triples: ConvKB's convolution over (head, relation,
tail), TransD's projections and ANALOGY's mixture of real and complex parts."""

import torch
from torchkge.models import AnalogyModel, ConvKBModel, TransDModel


class Model(torch.nn.Module):
    def __init__(self, entities, relations, dim):
        super().__init__()
        self.conv = ConvKBModel(dim, 32, entities, relations)
        self.translation = TransDModel(dim, dim // 2, entities, relations)
        self.analogy = AnalogyModel(dim, entities, relations, scalar_share=0.5)

    def forward(self, heads, tails, relations):
        return tuple(
            net.scoring_function(heads, tails, relations)
            for net in (self.conv, self.translation, self.analogy)
        )


def get_inputs():
    return [
        torch.randint(0, 500, (64,)),
        torch.randint(0, 500, (64,)),
        torch.randint(0, 20, (64,)),
    ]


def get_init_inputs():
    return [500, 20, 64]
