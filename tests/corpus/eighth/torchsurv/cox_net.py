"""Network of hazards with the losses of torchsurv: Cox's and Weibull's."""

import torch
from torch import nn
from torchsurv.loss import cox, weibull


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.cox = nn.Linear(hidden, 1)
        self.weibull = nn.Linear(hidden, 2)

    def forward(self, x, event, time):
        h = self.body(x)
        risk, shape = self.cox(h), self.weibull(h)
        return (
            cox.neg_partial_log_likelihood(risk, event, time, reduction="mean"),
            weibull.neg_log_likelihood_weibull(shape, event, time, reduction="mean"),
            weibull.survival_function_weibull(shape, time),
        )


def get_inputs():
    return [torch.randn(48, 16), torch.rand(48) < 0.6, torch.rand(48) * 50 + 1]


def get_init_inputs():
    return [16, 64]
