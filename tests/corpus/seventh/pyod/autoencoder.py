"""The autoencoder of PyOD for rows of a table: reconstruction and its distance as anomaly score."""

import torch
from pyod.models.auto_encoder import AutoEncoderModel


class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.model = AutoEncoderModel(
            features, hidden_neuron_list=[64, 32, 16], batch_norm=True, dropout_rate=0.2
        )

    def forward(self, rows):
        rebuilt = self.model(rows)
        return rebuilt, torch.linalg.vector_norm(rows - rebuilt, dim=1)


def get_inputs():
    return [torch.randn(256, 30)]


def get_init_inputs():
    return [30]
