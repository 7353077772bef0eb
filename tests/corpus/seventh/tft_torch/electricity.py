"""Temporal fusion transformer of tft-torch: quantiles of a series from static, past and known
future variables, numeric and categorical."""

import torch
from omegaconf import OmegaConf
from tft_torch.tft import TemporalFusionTransformer


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        config = {
            "task_type": "regression",
            "target_window_start": None,
            "model": {
                "dropout": 0.05,
                "state_size": width,
                "output_quantiles": [0.1, 0.5, 0.9],
                "lstm_layers": 2,
                "attention_heads": 4,
            },
            "data_props": {
                "num_historical_numeric": 5,
                "num_historical_categorical": 2,
                "historical_categorical_cardinalities": [8, 25],
                "num_static_numeric": 3,
                "num_static_categorical": 2,
                "static_categorical_cardinalities": [10, 50],
                "num_future_numeric": 1,
                "num_future_categorical": 2,
                "future_categorical_cardinalities": [8, 25],
            },
        }
        self.model = TemporalFusionTransformer(OmegaConf.create(config))

    def forward(self, batch):
        return self.model(batch)


def calendar(steps):
    return torch.stack([torch.randint(0, 8, (8, steps)), torch.randint(0, 25, (8, steps))], dim=-1)


def get_inputs():
    return [
        {
            "static_feats_numeric": torch.randn(8, 3),
            "static_feats_categorical": torch.randint(0, 10, (8, 2)),
            "historical_ts_numeric": torch.randn(8, 72, 5),
            "historical_ts_categorical": calendar(72),
            "future_ts_numeric": torch.randn(8, 24, 1),
            "future_ts_categorical": calendar(24),
        }
    ]


def get_init_inputs():
    return [64]
