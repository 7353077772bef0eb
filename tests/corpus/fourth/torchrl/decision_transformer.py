"""torchrl's decision transformer: returns to go, observations and actions as one sequence, and a
Gaussian over the next action."""

import torch
from torchrl.modules import OnlineDTActor


class Model(torch.nn.Module):
    def __init__(self, states, actions, dim):
        super().__init__()
        self.net = OnlineDTActor(
            states,
            actions,
            transformer_config={
                "n_embd": dim,
                "n_layer": 3,
                "n_head": 4,
                "n_inner": dim * 4,
                "activation": "relu",
                "n_positions": 256,
                "resid_pdrop": 0.1,
                "attn_pdrop": 0.1,
            },
        )

    def forward(self, observation, action, to_go):
        return self.net(observation, action, to_go)


def get_inputs():
    return [torch.randn(2, 12, 17), torch.randn(2, 12, 6), torch.rand(2, 12, 1)]


def get_init_inputs():
    return [17, 6, 128]
