"""pytorch-lifestream: a client's card transactions of varying number, embedded by category and
amount; a GRU gives the client's embedding."""

import torch
from ptls.data_load import PaddedBatch
from ptls.nn import RnnSeqEncoder, TrxEncoder


class Model(torch.nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.model = RnnSeqEncoder(
            trx_encoder=TrxEncoder(
                embeddings={
                    "mcc_code": {"in": codes, "out": 48},
                    "tr_type": {"in": 60, "out": 16},
                },
                numeric_values={"amount": "log"},
                embeddings_noise=0.003,
            ),
            hidden_size=width,
            type="gru",
        )

    def forward(self, codes, types, amounts, lengths):
        batch = PaddedBatch({"mcc_code": codes, "tr_type": types, "amount": amounts}, lengths)
        return self.model(batch)


def get_inputs():
    return [
        torch.randint(1, 200, (8, 90)),
        torch.randint(1, 60, (8, 90)),
        torch.randn(8, 90) * 100,
        torch.randint(10, 91, (8,)),
    ]


def get_init_inputs():
    return [200, 128]
