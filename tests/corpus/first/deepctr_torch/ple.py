"""deepctr-torch's PLE: two tasks with experts of their own and shared ones, over two levels of
gates."""

import torch
from deepctr_torch.inputs import DenseFeat, SparseFeat
from deepctr_torch.models import PLE


class Model(torch.nn.Module):
    def __init__(self, levels):
        super().__init__()
        fields = [SparseFeat(f"field{i}", 30, 8) for i in range(5)] + [DenseFeat("dense", 3)]
        self.net = PLE(
            fields,
            shared_expert_num=2,
            specific_expert_num=2,
            num_levels=levels,
            expert_dnn_hidden_units=(32,),
            gate_dnn_hidden_units=(16,),
        )

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    return [torch.cat([torch.randint(0, 30, (32, 5)).float(), torch.rand(32, 3)], 1)]


def get_init_inputs():
    return [2]
