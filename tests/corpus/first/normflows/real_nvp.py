"""normflows' RealNVP: the log probability through affine couplings and actnorm, two moons' size."""

import normflows
import torch


class Model(torch.nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        mask = torch.tensor([1.0, 0.0, 1.0, 0.0])
        flows = []
        for layer in range(layers):
            scale, shift = (
                normflows.nets.MLP([4, hidden, hidden, 4], init_zeros=False),
                normflows.nets.MLP([4, hidden, hidden, 4], init_zeros=False),
            )
            flows += [
                normflows.flows.MaskedAffineFlow(mask if layer % 2 else 1 - mask, shift, scale),
                normflows.flows.ActNorm(4),
            ]
        self.flow = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(4), flows)
        for flow in self.flow.flows[1::2]:
            flow.data_dep_init_done.fill_(1.0)

    def forward(self, x):
        return self.flow.log_prob(x)


def get_inputs():
    return [torch.randn(64, 4)]


def get_init_inputs():
    return [32, 4]
