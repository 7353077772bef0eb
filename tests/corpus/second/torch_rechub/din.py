"""Deep interest network: a user's history weighted by an attention network with Dice for the
candidate."""

import torch
from torch_rechub.basic.features import SequenceFeature, SparseFeature
from torch_rechub.models.ranking import DIN


class Model(torch.nn.Module):
    def __init__(self, items, dim):
        super().__init__()
        user = SparseFeature("user", 100, embed_dim=dim)
        target = SparseFeature("item", items, embed_dim=dim)
        history = SequenceFeature(
            "history", items, embed_dim=dim, pooling="concat", shared_with="item"
        )
        self.net = DIN(
            [user],
            [history],
            [target],
            mlp_params={"dims": [64, 32]},
            attention_mlp_params={"dims": [32, 16]},
        )

    def forward(self, user, item, history):
        return self.net({"user": user, "item": item, "history": history})


def get_inputs():
    return [
        torch.randint(0, 100, (16,)),
        torch.randint(0, 500, (16,)),
        torch.randint(0, 500, (16, 20)),
    ]


def get_init_inputs():
    return [500, 16]
