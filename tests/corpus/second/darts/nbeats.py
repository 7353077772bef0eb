"""N-BEATS as interpretable stacks: a trend by polynomials and a seasonality by Fourier terms."""

import torch
from darts.models.forecasting.nbeats import _NBEATSModule
from darts.utils.data.torch_datasets.utils import PLModuleInput


class Model(torch.nn.Module):
    def __init__(self, features, past, future):
        super().__init__()
        self.net = _NBEATSModule(
            input_dim=features,
            output_dim=features,
            nr_params=1,
            generic_architecture=False,
            num_stacks=2,
            num_blocks=3,
            num_layers=4,
            layer_widths=[64, 128],
            expansion_coefficient_dim=5,
            trend_polynomial_degree=2,
            batch_norm=False,
            dropout=0.1,
            activation="ReLU",
            input_chunk_length=past,
            output_chunk_length=future,
        )

    def forward(self, series):
        return self.net(PLModuleInput(series)).prediction


def get_inputs():
    return [torch.randn(8, 48, 2)]


def get_init_inputs():
    return [2, 48, 12]
