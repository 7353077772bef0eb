"""TabDPT: in-context classification of table rows, retrieved examples and queries in one go."""

import torch
from tabdpt.model import TabDPTModel


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = TabDPTModel(
            dropout=0.0,
            enc_cell_dim=32,
            n_out=10,
            regression_bin_count=64,
            regression_bin_min=-10.0,
            regression_bin_max=10.0,
            nhead=4,
            nhid=2 * width,
            ninp=width,
            nlayers=depth,
            num_features=20,
            base_len=128,
            max_len=512,
            y_encoder_dim=width,
            n_thinking_rows=8,
            use_flash=False,
        )

    def forward(self, rows, labels):
        return self.net(rows, labels, True)


def get_inputs():
    return [torch.randn(2, 96, 20), torch.randint(0, 10, (2, 64)).float()]


def get_init_inputs():
    return [256, 6]
