"""normflows' coupled rational quadratic splines with residual networks: samples to noise."""

import normflows
import torch


class Model(torch.nn.Module):
    def __init__(self, features, hidden, layers):
        super().__init__()
        flows = []
        for _ in range(layers):
            flows += [
                normflows.flows.CoupledRationalQuadraticSpline(features, 2, hidden),
                normflows.flows.LULinearPermute(features),
            ]
        self.flow = normflows.NormalizingFlow(
            normflows.distributions.DiagGaussian(features, trainable=False), flows
        )

    def forward(self, x):
        return self.flow.inverse_and_log_det(x)


def get_inputs():
    return [torch.randn(32, 6)]


def get_init_inputs():
    return [6, 48, 3]
