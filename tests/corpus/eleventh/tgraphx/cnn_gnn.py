"""Image patches through a CNN, then message passing on feature maps."""

import torch
from tgraphx.models.cnn_gnn_model import CNN_GNN_Model
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = CNN_GNN_Model(
            {
                "in_channels": 3,
                "out_features": 32,
                "num_layers": 3,
                "hidden_channels": 16,
                "dropout_prob": 0.0,
                "return_feature_map": True,
                "use_residual": False,
            },
            (32, 4, 4),
            (32, 4, 4),
            num_classes=6,
            num_gnn_layers=2,
            residual=True,
        )

    def forward(self, patches, edges):
        return self.model(patches, edges)


def get_inputs():
    return [torch.randn(12, 3, 16, 16), torch.randint(0, 12, (2, 40))]


def get_init_inputs():
    return []
