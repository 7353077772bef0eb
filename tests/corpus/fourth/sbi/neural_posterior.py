"""Neural posterior estimation of sbi: a neural spline flow over parameters, conditioned on a set of
observations that an invariant network embeds; log-probabilities."""

import torch
from sbi.neural_nets import posterior_nn
from sbi.neural_nets.embedding_nets import FCEmbedding, PermutationInvariantEmbedding


class Model(torch.nn.Module):
    def __init__(self, parameters, features, trials):
        super().__init__()
        trial = FCEmbedding(input_dim=features, num_hiddens=40, num_layers=2, output_dim=20)
        embed = PermutationInvariantEmbedding(
            trial_net=trial, trial_net_output_dim=20, num_hiddens=64, num_layers=2, output_dim=16
        )
        build = posterior_nn(
            "nsf", embedding_net=embed, hidden_features=48, num_transforms=4, num_bins=8
        )
        self.net = build(torch.randn(50, parameters), torch.randn(50, trials, features))

    def forward(self, parameters, observed):
        return self.net.log_prob(parameters[None], condition=observed)


def get_inputs():
    return [torch.randn(6, 4), torch.randn(6, 12, 5)]


def get_init_inputs():
    return [4, 5, 12]
