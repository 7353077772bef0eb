"""A temporal convolutional network of dilated causal convolutions with weight norm."""

import torch
from darts.models.forecasting.tcn_model import _TCNModule
from darts.utils.data.torch_datasets.utils import PLModuleInput


class Model(torch.nn.Module):
    def __init__(self, past, filters):
        super().__init__()
        self.net = _TCNModule(
            input_size=3,
            kernel_size=3,
            num_filters=filters,
            num_layers=None,
            dilation_base=2,
            weight_norm=True,
            target_size=2,
            nr_params=1,
            target_length=12,
            dropout=0.2,
            input_chunk_length=past,
            output_chunk_length=12,
        )

    def forward(self, series):
        return self.net(PLModuleInput(series)).prediction


def get_inputs():
    return [torch.randn(4, 60, 3)]


def get_init_inputs():
    return [60, 16]
