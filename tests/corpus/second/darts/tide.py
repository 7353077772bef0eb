"""TiDE: dense residual encoder and decoder with past and future covariates and a static one."""

import torch
from darts.models.forecasting.tide_model import _TideModule
from darts.utils.data.torch_datasets.utils import PLModuleInput


class Model(torch.nn.Module):
    def __init__(self, past, future, hidden):
        super().__init__()
        self.net = _TideModule(
            input_dim=2 + 3,
            output_dim=2,
            future_cov_dim=3,
            static_cov_dim=1,
            nr_params=1,
            num_encoder_layers=2,
            num_decoder_layers=2,
            decoder_output_dim=8,
            hidden_size=hidden,
            temporal_decoder_hidden=32,
            temporal_hidden_size_past=hidden,
            temporal_hidden_size_future=hidden,
            temporal_width_past=4,
            temporal_width_future=4,
            use_layer_norm=True,
            dropout=0.1,
            input_chunk_length=past,
            output_chunk_length=future,
            use_reversible_instance_norm=True,
        )

    def forward(self, past, future, static):
        return self.net(
            PLModuleInput(past[..., :2], None, past[..., 2:], future, static)
        ).prediction


def get_inputs():
    return [torch.randn(4, 36, 5), torch.randn(4, 12, 3), torch.randn(4, 1, 1)]


def get_init_inputs():
    return [36, 12, 64]
