"""prediction-flow: DIEN, the evolution of a user's interest by an attentional GRU."""

import torch
from prediction_flow.features import Category, Features, Number, Sequence
from prediction_flow.pytorch import DIEN, AttentionGroup
from torch import nn


class Model(nn.Module):
    def __init__(self, items, dim, gru):
        super().__init__()
        features = Features(
            number_features=[Number("age", None)],
            category_features=[
                Category("user", None, vocab_size=50),
                Category("item", None, vocab_size=items),
            ],
            sequence_features=[
                Sequence("clicked", None, embedding_name="item", vocab_size=items, max_length=8)
            ],
        )
        group = AttentionGroup(
            "group", [{"ad": "item", "pos_hist": "clicked"}], hidden_layers=[16, 8], gru_type=gru
        )
        self.model = DIEN(
            features,
            [group],
            num_classes=2,
            embedding_size=dim,
            hidden_layers=[64, 32],
            final_activation="sigmoid",
        )

    def forward(self, age, user, item, clicked, length):
        return self.model(
            {"age": age, "user": user, "item": item, "clicked": clicked, "__clicked_length": length}
        )[0]


def get_inputs():
    return [
        torch.rand(6),
        torch.randint(1, 50, (6,)),
        torch.randint(1, 200, (6,)),
        torch.randint(1, 200, (6, 8)),
        torch.tensor([8, 7, 6, 5, 4, 3]),
    ]


def get_init_inputs():
    return [200, 16, "AUGRU"]
