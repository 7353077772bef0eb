"""A neural spline flow: rational quadratic couplings between LU-decomposed linear maps; log
density."""

import torch
from nflows import distributions, flows, transforms
from nflows.nn.nets import ResidualNet


class Model(torch.nn.Module):
    def __init__(self, features, layers):
        super().__init__()
        steps = []
        for i in range(layers):
            mask = torch.arange(features) % 2 == i % 2
            steps += [
                transforms.LULinear(features),
                transforms.PiecewiseRationalQuadraticCouplingTransform(
                    mask=mask.int(),
                    transform_net_create_fn=lambda inputs, outputs: ResidualNet(
                        inputs, outputs, hidden_features=32
                    ),
                    tails="linear",
                    tail_bound=5.0,
                    num_bins=8,
                ),
            ]
        self.flow = flows.Flow(
            transforms.CompositeTransform(steps), distributions.StandardNormal([features])
        )

    def forward(self, x):
        return self.flow.log_prob(x)


def get_inputs():
    return [torch.randn(64, 6)]


def get_init_inputs():
    return [6, 3]
