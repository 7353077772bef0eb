"""Robot policy of RSL-RL: normalized observations, an LSTM, an MLP and a Gaussian with learned
deviation; three control steps with carried state, log-probabilities and entropy."""

import torch
from rsl_rl.models import RNNModel
from tensordict import TensorDict


class Model(torch.nn.Module):
    def __init__(self, observations, actions, hidden):
        super().__init__()
        sample = TensorDict({"policy": torch.zeros(1, observations)}, batch_size=[1])
        self.net = RNNModel(
            sample,
            {"actor": ["policy"]},
            "actor",
            actions,
            hidden_dims=[256, 128],
            obs_normalization=True,
            distribution_cfg={"class_name": "GaussianDistribution", "init_std": 1.0},
            rnn_type="lstm",
            rnn_hidden_dim=hidden,
            rnn_num_layers=2,
        )

    def forward(self, observations):
        self.net.reset()
        means, scores = [], []
        for step in observations:
            batch = TensorDict({"policy": step}, batch_size=[step.shape[0]])
            action = self.net(batch, stochastic_output=True)
            means.append(self.net.output_mean)
            scores.append(self.net.get_output_log_prob(action))
        return torch.stack(means), torch.stack(scores), self.net.output_entropy


def get_inputs():
    return [torch.randn(3, 16, 48)]


def get_init_inputs():
    return [48, 12, 128]
