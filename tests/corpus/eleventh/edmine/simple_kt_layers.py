"""SimpleKT: causal attention layers over answers of a student."""

import torch
from edmine.model.module.Transformer import TransformerLayer4SimpleKT
from torch import nn

PARAMS = {
    "device": "cpu",
    "models_config": {
        "SimpleKT": {
            "dim_model": 64,
            "dim_ff": 128,
            "num_head": 4,
            "dropout": 0.1,
            "key_query_same": True,
            "num_block": 2,
            "seq_len": 32,
            "separate_qa": False,
            "dim_final_fc": 64,
        }
    },
}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([TransformerLayer4SimpleKT(PARAMS) for _ in range(2)])

    def forward(self, questions, answers):
        for layer in self.layers:
            questions = layer(0, questions, questions, answers, apply_pos=True)
        return questions


def get_inputs():
    return [torch.randn(4, 20, 64), torch.randn(4, 20, 64)]


def get_init_inputs():
    return []
