"""Value iteration network that plans on a maze, from scaling_vin_pytorch."""

import torch
from scaling_vin_pytorch import ScalableVIN
from torch import nn


class Model(nn.Module):
    def __init__(self, actions, depth):
        super().__init__()
        self.model = ScalableVIN(
            state_dim=3,
            reward_dim=2,
            num_actions=actions,
            dim_hidden=64,
            depth=depth,
            init_kernel_size=7,
            checkpoint=False,
            vi_module_kwargs={"receptive_field": 3},
        )

    def forward(self, state, reward, position):
        return self.model(state, reward, position)


def get_inputs():
    return [torch.randn(2, 3, 32, 32), torch.randn(2, 2, 32, 32), torch.tensor([[3, 4], [20, 9]])]


def get_init_inputs():
    return [4, 30]
