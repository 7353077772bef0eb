"""SwitchTab: salient and mutual embeddings of table rows."""

import torch
from torch import nn
from ts3l.models import SwitchTab
from ts3l.utils.backbone_utils import MLPBackboneConfig
from ts3l.utils.embedding_utils import FTEmbeddingConfig


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        embedding = FTEmbeddingConfig(
            input_dim=12,
            emb_dim=16,
            cont_nums=8,
            cat_cardinality=[4, 5, 6, 7],
            required_token_dim=1,
        )
        self.model = SwitchTab(
            embedding,
            MLPBackboneConfig(input_dim=embedding.output_dim, hidden_dims=64, output_dim=64),
            output_dim=3,
        )

    def forward(self, x):
        return self.model(x)


def get_inputs():
    return [torch.cat([torch.randint(0, 4, (16, 4)).float(), torch.randn(16, 8)], dim=1)]


def get_init_inputs():
    return []
