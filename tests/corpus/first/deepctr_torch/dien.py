"""deepctr-torch's DIEN: what a user looked at, evolved by GRUs with attention to what is
offered; histories of other lengths."""

import torch
from deepctr_torch.inputs import DenseFeat, SparseFeat, VarLenSparseFeat
from deepctr_torch.models import DIEN


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        fields = [
            SparseFeat("user", 20, width),
            SparseFeat("item", 40, width, use_hash=False),
            DenseFeat("score", 1),
        ]
        history = VarLenSparseFeat(
            SparseFeat("hist_item", 40, width, embedding_name="item"),
            maxlen=6,
            length_name="length",
        )
        self.net = DIEN([*fields, history], ["item"], gru_type="AUGRU", dnn_hidden_units=(32, 16))

    def forward(self, rows):
        return self.net(rows)


def get_inputs():
    user, item, score = torch.randint(0, 20, (8, 1)), torch.randint(1, 40, (8, 1)), torch.rand(8, 1)
    history, lengths = torch.randint(1, 40, (8, 6)), torch.randint(1, 7, (8, 1))
    return [torch.cat([user.float(), item.float(), score, history.float(), lengths.float()], 1)]


def get_init_inputs():
    return [8]
