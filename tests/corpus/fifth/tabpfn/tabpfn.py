"""TabPFN v2: attention between features and between rows of a table, the classes of new rows."""

import torch
from tabpfn.architectures.tabpfn_v2 import TabPFNV2Config, get_architecture


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.net = get_architecture(
            TabPFNV2Config(max_num_classes=10, num_buckets=0, nlayers=layers)
        )

    def forward(self, rows, labels):
        return self.net(rows, labels)


def get_inputs():
    rows = torch.randn(60, 1, 9)
    rows[5, 0, 3] = float("nan")
    return [rows, torch.randint(0, 4, (45, 1)).float()]


def get_init_inputs():
    return [6]
