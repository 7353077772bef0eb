"""Caser: the last items as an image, convolved in both directions; user embeddings."""

import torch
from recbole.model.sequential_recommender import Caser


class Items:
    """What the model asks of a dataset: how many users and items there are."""

    def __init__(self, items):
        self.items = items
        self.user_num = items

    def num(self, field):
        return self.items


class Model(torch.nn.Module):
    def __init__(self, items, length, width):
        super().__init__()
        config = {
            "USER_ID_FIELD": "user_id",
            "ITEM_ID_FIELD": "item_id",
            "LIST_SUFFIX": "_list",
            "ITEM_LIST_LENGTH_FIELD": "item_length",
            "NEG_PREFIX": "neg_",
            "MAX_ITEM_LIST_LENGTH": length,
            "device": torch.device("cpu"),
            "loss_type": "CE",
            "embedding_size": width,
            "nh": 8,
            "nv": 4,
            "dropout_prob": 0.4,
            "reg_weight": 1e-4,
        }
        self.net = Caser(config, Items(items))

    def forward(self, users, history, lengths):
        return self.net.full_sort_predict(
            {"user_id": users, "item_id_list": history, "item_length": lengths}
        )


def get_inputs():
    history = torch.randint(1, 500, (8, 20))
    lengths = torch.randint(3, 21, (8,))
    history = history * (torch.arange(20) < lengths[:, None])
    return [torch.randint(1, 500, (8,)), history, lengths]


def get_init_inputs():
    return [500, 20, 64]
