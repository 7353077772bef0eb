"""Q-Transformer: Q values of a robot's actions, one dimension after the other, dueling heads."""

import torch
from q_transformer import QRoboticTransformer


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = QRoboticTransformer(
            vit={
                "num_classes": 100,
                "dim_conv_stem": 32,
                "dim": dim,
                "dim_head": 32,
                "depth": (1, 1, 2, 1),
                "window_size": 4,
                "mbconv_expansion_rate": 4,
                "mbconv_shrinkage_rate": 0.25,
                "dropout": 0.1,
            },
            num_actions=6,
            action_bins=128,
            depth=depth,
            heads=4,
            dim_head=32,
            dueling=True,
            flash_attn=False,
            condition_on_text=False,
            q_head_attn_kwargs={"attn_heads": 4, "attn_dim_head": 32, "attn_depth": 2},
        )

    def forward(self, video, actions):
        return self.net(video, actions=actions)


def get_inputs():
    return [torch.rand(1, 3, 4, 128, 128), torch.randint(0, 128, (1, 6))]


def get_init_inputs():
    return [32, 3]
