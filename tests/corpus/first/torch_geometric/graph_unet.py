"""torch_geometric's GraphUNet: nodes pooled by their scores, three levels down and up again."""

import torch
from torch_geometric.nn.models import GraphUNet


class Model(GraphUNet):
    pass


def get_inputs():
    return [torch.randn(96, 16), torch.randint(0, 96, (2, 400))]


def get_init_inputs():
    return [16, 32, 7, 3]
