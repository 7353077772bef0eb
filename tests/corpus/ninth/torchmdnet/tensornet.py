"""TensorNet of torchmdnet: the energy of a molecule and the forces, its derivative."""

import torch
from torch import nn
from torchmdnet.models.model import create_model


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.model = create_model(
            {
                "model": "tensornet",
                "embedding_dimension": width,
                "num_layers": layers,
                "num_rbf": 32,
                "rbf_type": "expnorm",
                "trainable_rbf": False,
                "activation": "silu",
                "cutoff_lower": 0.0,
                "cutoff_upper": 4.5,
                "max_z": 100,
                "max_num_neighbors": 64,
                "equivariance_invariance_group": "O(3)",
                "static_shapes": False,
                "prior_model": None,
                "atom_filter": -1,
                "derivative": True,
                "output_model": "Scalar",
                "reduce_op": "sum",
                "precision": 32,
            }
        )

    def forward(self, numbers, positions, batch):
        with torch.enable_grad():
            return self.model(numbers, positions, batch)


def get_inputs():
    numbers = torch.tensor([8, 1, 1, 6, 1, 1, 1, 1])
    water = [[0.0, 0.0, 0.12], [0.0, 0.76, -0.47], [0.0, -0.76, -0.47]]
    methane = [[0, 0, 0], [0.63, 0.63, 0.63], [-0.63, -0.63, 0.63], [-0.63, 0.63, -0.63]]
    positions = torch.tensor(water + methane + [[0.63, -0.63, -0.63]])
    return [numbers, positions, torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])]


def get_init_inputs():
    return [64, 2]
