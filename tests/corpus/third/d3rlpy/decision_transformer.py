"""Decision transformer for continuous control: returns, states and actions interleaved, causal."""

import torch
from d3rlpy.models.torch.encoders import VectorEncoder
from d3rlpy.models.torch.transformers import (
    ContinuousDecisionTransformer,
    GlobalPositionEncoding,
)


class Model(torch.nn.Module):
    def __init__(self, observation, action, width, layers, context):
        super().__init__()
        self.net = ContinuousDecisionTransformer(
            encoder=VectorEncoder((observation,), [width], exclude_last_activation=True),
            embed_size=width,
            position_encoding=GlobalPositionEncoding(width, 1000, context),
            action_size=action,
            num_heads=4,
            context_size=context,
            num_layers=layers,
            attn_dropout=0.1,
            resid_dropout=0.1,
            embed_dropout=0.1,
            activation=torch.nn.GELU(),
        )

    def forward(self, observations, actions, returns, times, mask):
        return self.net(observations, actions, returns, times, mask)


def get_inputs():
    mask = torch.ones(4, 20)
    mask[1, :8] = 0
    return [
        torch.randn(4, 20, 17),
        torch.rand(4, 20, 6) * 2 - 1,
        torch.randn(4, 20, 1),
        torch.arange(20).repeat(4, 1) + 100,
        mask,
    ]


def get_init_inputs():
    return [17, 6, 128, 4, 20]
