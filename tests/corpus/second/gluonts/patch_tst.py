"""GluonTS's PatchTST: patches of a scaled series in a transformer, a Student's t for each future
step."""

import torch
from gluonts.torch.distributions import StudentTOutput
from gluonts.torch.model.patch_tst.module import PatchTSTModel


class Model(torch.nn.Module):
    def __init__(self, past, future, dim):
        super().__init__()
        self.net = PatchTSTModel(
            future,
            past,
            8,
            4,
            "end",
            dim,
            4,
            4 * dim,
            0,
            0.1,
            "relu",
            False,
            2,
            "mean",
            StudentTOutput(),
        )

    def forward(self, past, observed):
        return self.net(past, observed)


def get_inputs():
    return [torch.randn(4, 64), torch.ones(4, 64)]


def get_init_inputs():
    return [64, 16, 32]
