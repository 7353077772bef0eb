"""iTransformer with Fourier tokens: each variate gives a token from its samples and one from its
spectrum, all of which attend to each other."""

import torch
from iTransformer import iTransformerFFT


class Model(torch.nn.Module):
    def __init__(self, variates, lookback, dim, depth):
        super().__init__()
        self.net = iTransformerFFT(
            num_variates=variates,
            lookback_len=lookback,
            depth=depth,
            dim=dim,
            pred_length=24,
            num_tokens_per_variate=1,
            use_reversible_instance_norm=True,
        )

    def forward(self, series):
        return self.net(series)


def get_inputs():
    return [torch.randn(2, 96, 37)]


def get_init_inputs():
    return [37, 96, 128, 4]
