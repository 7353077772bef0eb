"""A variational quantum circuit of PennyLane between two linear layers: angles in, entangling
layers, expectations out."""

import pennylane
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, qubits, layers, classes):
        super().__init__()
        device = pennylane.device("default.qubit", wires=qubits)

        @pennylane.qnode(device, interface="torch", diff_method="backprop")
        def circuit(inputs, weights):
            pennylane.AngleEmbedding(inputs, wires=range(qubits))
            pennylane.BasicEntanglerLayers(weights, wires=range(qubits))
            return [pennylane.expval(pennylane.PauliZ(i)) for i in range(qubits)]

        self.net = nn.Sequential(
            nn.Linear(features, qubits),
            pennylane.qnn.TorchLayer(circuit, {"weights": (layers, qubits)}),
            nn.Linear(qubits, classes),
        )

    def forward(self, x):
        return torch.softmax(self.net(x), dim=1)


def get_inputs():
    return [torch.randn(8, 10)]


def get_init_inputs():
    return [10, 4, 3, 2]
