"""pytorch-tabnet's TabNet: features of a table chosen by sparsemax in four steps, two
categorical columns."""

import torch
from pytorch_tabnet.tab_network import TabNet


class Model(torch.nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.net = TabNet(
            14,
            3,
            n_d=width,
            n_a=width,
            n_steps=steps,
            cat_idxs=[0, 5],
            cat_dims=[7, 4],
            cat_emb_dim=[2, 2],
            group_attention_matrix=torch.eye(14),
        )

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    rows = torch.randn(64, 14)
    rows[:, 0] = torch.randint(0, 7, (64,))
    rows[:, 5] = torch.randint(0, 4, (64,))
    return [rows]


def get_init_inputs():
    return [16, 4]
