"""DeepAR's sampling: lagged inputs of an LSTM, each next step drawn from a Student's t, 10
paths."""

import torch
from gluonts.torch.model.deepar.module import DeepARModel


class Model(torch.nn.Module):
    def __init__(self, past, future, hidden):
        super().__init__()
        self.net = DeepARModel(
            "D",
            past,
            future,
            num_feat_dynamic_real=2,
            cardinality=[4],
            hidden_size=hidden,
            lags_seq=[1, 2, 7],
            num_parallel_samples=10,
        )

    def forward(self, category, static, past_features, past, observed, future_features):
        return self.net(category, static, past_features, past, observed, future_features)


def get_inputs():
    return [
        torch.randint(0, 4, (2, 1)),
        torch.randn(2, 1),
        torch.randn(2, 31, 2),
        torch.rand(2, 31) + 1,
        torch.ones(2, 31),
        torch.randn(2, 6, 2),
    ]


def get_init_inputs():
    return [24, 6, 32]
