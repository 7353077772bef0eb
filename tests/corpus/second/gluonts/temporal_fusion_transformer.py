"""A temporal fusion transformer: variable selection, static contexts, LSTMs, attention;
quantiles."""

import torch
from gluonts.torch.distributions import QuantileOutput
from gluonts.torch.model.tft.module import TemporalFusionTransformerModel


class Model(torch.nn.Module):
    def __init__(self, past, future, hidden):
        super().__init__()
        self.net = TemporalFusionTransformerModel(
            past,
            future,
            d_feat_static_real=[2],
            c_feat_static_cat=[5],
            d_feat_dynamic_real=[3],
            num_heads=4,
            d_hidden=hidden,
            d_var=hidden,
            distr_output=QuantileOutput([0.1, 0.5, 0.9]),
        )

    def forward(self, past, observed, static, category, dynamic):
        return self.net(past, observed, static, category, dynamic)


def get_inputs():
    return [
        torch.rand(4, 36) + 1,
        torch.ones(4, 36),
        torch.randn(4, 2),
        torch.randint(0, 5, (4, 1)),
        torch.randn(4, 48, 3),
    ]


def get_init_inputs():
    return [36, 12, 32]
