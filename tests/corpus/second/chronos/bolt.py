"""Chronos-Bolt: patches of a series in a T5, one decoding step that gives nine quantiles of 16
steps."""

import torch
from chronos.chronos_bolt import ChronosBoltModelForForecasting
from transformers import T5Config


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        config = T5Config(
            vocab_size=2,
            d_model=dim,
            d_kv=16,
            d_ff=2 * dim,
            num_layers=layers,
            num_heads=4,
            is_gated_act=False,
            decoder_start_token_id=0,
        )
        config.chronos_config = {
            "context_length": 128,
            "prediction_length": 16,
            "input_patch_size": 16,
            "input_patch_stride": 16,
            "quantiles": [i / 10 for i in range(1, 10)],
            "use_reg_token": True,
        }
        self.net = ChronosBoltModelForForecasting(config)

    def forward(self, series):
        return self.net(series).quantile_preds


def get_inputs():
    return [torch.randn(2, 128)]


def get_init_inputs():
    return [64, 2]
