"""Chronos-2: attention over time and over the series of a group, 21 quantiles."""

import torch
from chronos.chronos2.config import Chronos2CoreConfig
from chronos.chronos2.model import Chronos2Model


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        config = Chronos2CoreConfig(
            d_model=dim, d_kv=16, d_ff=2 * dim, num_layers=layers, num_heads=4
        )
        config.chronos_config = {
            "context_length": 128,
            "output_patch_size": 16,
            "input_patch_size": 16,
            "input_patch_stride": 16,
            "quantiles": [i / 22 for i in range(1, 22)],
            "use_reg_token": True,
            "use_arcsinh": True,
            "max_output_patches": 4,
        }
        self.net = Chronos2Model(config)

    def forward(self, series, groups):
        return self.net(series, group_ids=groups, num_output_patches=2).quantile_preds


def get_inputs():
    return [torch.randn(4, 128), torch.tensor([0, 0, 1, 1])]


def get_init_inputs():
    return [64, 2]
