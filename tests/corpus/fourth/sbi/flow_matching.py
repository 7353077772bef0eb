"""Flow matching posterior estimation of sbi: a transformer as the vector field over parameters, and
the loss of flow matching at given times."""

import torch
from sbi.neural_nets import posterior_flow_nn
from sbi.neural_nets.embedding_nets import CNNEmbedding


class Model(torch.nn.Module):
    def __init__(self, parameters, length):
        super().__init__()
        embed = CNNEmbedding(
            input_shape=(length,), num_conv_layers=2, out_channels_per_layer=[8, 16], output_dim=24
        )
        build = posterior_flow_nn("ada_mlp", embedding_net=embed, hidden_features=96, num_layers=4)
        self.net = build(torch.randn(50, parameters), torch.randn(50, length))

    def forward(self, parameters, observed, time):
        field = self.net(parameters, observed, time)
        return field, self.net.loss(parameters, observed, times=time)


def get_inputs():
    return [torch.randn(8, 5), torch.randn(8, 64), torch.rand(8)]


def get_init_inputs():
    return [5, 64]
