"""QMIX on torchrl: one network for all agents through vmap, the best action of each, and a mixer
whose weights come from the state and are never negative."""

import torch
from torchrl.modules import MultiAgentMLP, QMixer


class Model(torch.nn.Module):
    def __init__(self, agents, observation, actions, state):
        super().__init__()
        self.agents = MultiAgentMLP(
            n_agent_inputs=observation,
            n_agent_outputs=actions,
            n_agents=agents,
            centralized=False,
            share_params=False,
            depth=2,
            num_cells=64,
        )
        self.mixer = QMixer(
            state_shape=(state,), mixing_embed_dim=32, n_agents=agents, device="cpu"
        )

    def forward(self, observation, state):
        values = self.agents(observation)
        best = values.max(dim=-1, keepdim=True)
        return best.indices, self.mixer(best.values, state)


def get_inputs():
    return [torch.randn(8, 4, 20), torch.randn(8, 48)]


def get_init_inputs():
    return [4, 20, 6, 48]
