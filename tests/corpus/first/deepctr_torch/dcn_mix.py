"""deepctr-torch's DCN-Mix: low rank crosses by a mixture of experts."""

import torch
from deepctr_torch.inputs import DenseFeat, SparseFeat
from deepctr_torch.models import DCNMix


class Model(torch.nn.Module):
    def __init__(self, crosses, experts):
        super().__init__()
        fields = [SparseFeat(f"field{i}", 30, 8) for i in range(5)] + [DenseFeat("dense", 3)]
        self.net = DCNMix(
            fields,
            fields,
            cross_num=crosses,
            low_rank=16,
            num_experts=experts,
            dnn_hidden_units=(64, 32),
        )

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.cat([torch.randint(0, 30, (32, 5)).float(), torch.rand(32, 3)], 1)]


def get_init_inputs():
    return [3, 4]
