"""Toto: a decoder for many series at once that scales by what it has seen so far, attends over time
and every few layers over the series, and ends with a mixture of Student's t."""

import torch
from toto.model.toto import Toto


class Model(torch.nn.Module):
    def __init__(self, patch, dim, layers):
        super().__init__()
        self.net = Toto(
            patch_size=patch,
            stride=patch,
            embed_dim=dim,
            num_layers=layers,
            num_heads=4,
            mlp_hidden_dim=dim * 2,
            dropout=0.1,
            spacewise_every_n_layers=3,
            scaler_cls="<class 'model.scaler.CausalPatchStdMeanScaler'>",
            output_distribution_classes=["<class 'model.distribution.MixtureOfStudentTsOutput'>"],
            output_distribution_kwargs={"k_components": 5},
            spacewise_first=False,
            use_memory_efficient_attention=False,
        )

    def forward(self, series, present, group):
        distribution, place, scale = self.net.model(series, present, group)
        mean = distribution.mean * scale + place
        return mean, distribution.variance, place, scale


def get_inputs():
    present = torch.ones(1, 5, 256, dtype=torch.bool)
    present[:, :, :20] = False
    return [torch.randn(1, 5, 256).cumsum(dim=-1), present, torch.zeros(1, 5, 256)]


def get_init_inputs():
    return [32, 128, 6]
