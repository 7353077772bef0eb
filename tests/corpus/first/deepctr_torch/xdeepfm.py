"""deepctr-torch's xDeepFM: a compressed interaction network beside a deep one, six sparse
fields and two dense."""

import torch
from deepctr_torch.inputs import DenseFeat, SparseFeat
from deepctr_torch.models import xDeepFM


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        fields = [SparseFeat(f"field{i}", 50, width) for i in range(6)] + [DenseFeat("dense", 2)]
        self.net = xDeepFM(fields, fields, dnn_hidden_units=(64, 32), cin_layer_size=(32, 16))

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.cat([torch.randint(0, 50, (32, 6)).float(), torch.rand(32, 2)], 1)]


def get_init_inputs():
    return [8]
