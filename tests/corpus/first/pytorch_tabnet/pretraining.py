"""pytorch-tabnet's TabNetPretraining: entmax masks, an encoder and a decoder of a table's
hidden features."""

import torch
from pytorch_tabnet.tab_network import TabNetPretraining


class Model(torch.nn.Module):
    def __init__(self, width, steps):
        super().__init__()
        self.net = TabNetPretraining(
            20,
            0.2,
            n_d=width,
            n_a=width,
            n_steps=steps,
            mask_type="entmax",
            n_shared_decoder=2,
            n_indep_decoder=1,
            group_attention_matrix=torch.eye(20),
        )

    def forward(self, rows):
        return self.net(rows)[0]


def get_inputs():
    return [torch.randn(48, 20)]


def get_init_inputs():
    return [12, 3]
