"""TiRex: an sLSTM of several blocks over patches of a series with gaps; nine quantiles of the
patches that follow."""

import torch
from tirex.models.tirex import TiRexZero


class Model(torch.nn.Module):
    def __init__(self, dim, blocks, ahead):
        super().__init__()
        self.ahead = ahead
        self.net = TiRexZero(
            "torch",
            {
                "input_patch_size": 32,
                "output_patch_size": 32,
                "quantiles": [i / 10 for i in range(1, 10)],
                "block_kwargs": {"embedding_dim": dim, "num_heads": 4, "num_blocks": blocks},
                "input_ff_dim": dim * 2,
            },
            train_ctx_len=512,
        )
        for name, weight in self.net.named_parameters():  # the package leaves these as they lie
            if weight.dim() == 3 or name.endswith("_bias_"):
                torch.nn.init.normal_(weight, std=0.05)

    def forward(self, series):
        return self.net._forecast_single_step(series, self.ahead)


def get_inputs():
    series = torch.randn(2, 512).cumsum(dim=1)
    series[0, :70] = torch.nan
    return [series]


def get_init_inputs():
    return [128, 4, 2]
