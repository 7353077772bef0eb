"""TabICL: columns are embedded by set transformers with inducing points, rows by a transformer with
rotary positions, and a last transformer learns the labels in context."""

import torch
from tabicl._model.tabicl import TabICL


class Model(torch.nn.Module):
    def __init__(self, dim, blocks):
        super().__init__()
        self.net = TabICL(
            max_classes=10,
            embed_dim=dim,
            col_num_blocks=2,
            col_nhead=4,
            col_num_inds=32,
            row_num_blocks=2,
            row_nhead=4,
            icl_num_blocks=blocks,
            icl_nhead=4,
            zero_init=False,
        )

    def forward(self, table, labels):
        return self.net(table, labels)


def get_inputs():
    labels = torch.randint(0, 3, (2, 40)).float()
    labels[:, :3] = torch.arange(3.0)
    return [torch.randn(2, 56, 7), labels]


def get_init_inputs():
    return [64, 4]
