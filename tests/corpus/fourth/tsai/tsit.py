"""TSiT of tsai: a transformer on a multivariate series with locality self-attention, a convolution
that makes tokens of pieces and a class token; two features are categories."""

import torch
from tsai.models.TSiTPlus import TSiTPlus


class Model(torch.nn.Module):
    def __init__(self, features, classes, length):
        super().__init__()
        self.net = TSiTPlus(
            features,
            classes,
            length,
            d_model=64,
            depth=4,
            n_heads=8,
            lsa=True,
            mlp_ratio=2,
            pre_norm=True,
            use_token=True,
            token_size=8,
            cat_pos=[0, 3],
            n_cat_embeds=[5, 4],
            cat_embed_dims=[8, 8],
            verbose=False,
        )

    def forward(self, series):
        return self.net(series)


def get_inputs():
    series = torch.randn(4, 6, 96)
    series[:, 0] = torch.randint(0, 5, (4, 96)).float()
    series[:, 3] = torch.randint(0, 4, (4, 96)).float()
    return [series]


def get_init_inputs():
    return [6, 5, 96]
