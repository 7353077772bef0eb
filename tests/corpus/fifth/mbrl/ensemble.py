"""An ensemble of probabilistic dynamics models, rolled out for some steps of imagination."""

import torch
from mbrl.models import GaussianMLP


class Model(torch.nn.Module):
    def __init__(self, members):
        super().__init__()
        self.net = GaussianMLP(
            in_size=17 + 6,
            out_size=17 + 1,
            device="cpu",
            num_layers=4,
            ensemble_size=members,
            hid_size=200,
            learn_logvar_bounds=True,
            activation_fn_cfg={"_target_": "torch.nn.SiLU"},
        )

    def forward(self, state, actions):
        state = state.expand(self.net.num_members, *state.shape)
        total = 0.0
        for action in actions:
            x = torch.cat([state, action.expand(self.net.num_members, *action.shape)], dim=-1)
            mean, spread = self.net(x, use_propagation=False)
            state = state + mean[..., :-1]
            total = total + mean[..., -1]
        return state, total, spread


def get_inputs():
    return [torch.randn(32, 17), torch.randn(5, 32, 6)]


def get_init_inputs():
    return [7]
