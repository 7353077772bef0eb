"""Variational quantum circuit of pyqtorch: rotations, entanglers and the readout of each qubit."""

import pyqtorch as pyq
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, qubits, layers):
        super().__init__()
        self.qubits = qubits
        gates = [pyq.RX(i, f"x{i}") for i in range(qubits)]
        names = []
        for layer in range(layers):
            for i in range(qubits):
                gates += [pyq.RY(i, f"a{layer}_{i}"), pyq.RZ(i, f"b{layer}_{i}")]
                names += [f"a{layer}_{i}", f"b{layer}_{i}"]
            gates += [pyq.CNOT(i, (i + 1) % qubits) for i in range(qubits)]
        self.circuit = pyq.QuantumCircuit(qubits, gates)
        self.angles = nn.ParameterDict(
            {n: nn.Parameter(torch.rand(1, dtype=torch.double)) for n in names}
        )

    def forward(self, x):
        values = dict(self.angles.items())
        values.update({f"x{i}": x[:, i] for i in range(self.qubits)})
        state = self.circuit(self.circuit.init_state(batch_size=x.shape[0]), values)
        probability = state.abs().square()
        dims = range(self.qubits)
        return torch.stack([probability.sum([d for d in dims if d != i])[0] for i in dims], -1)


def get_inputs():
    return [torch.rand(8, 6, dtype=torch.double)]


def get_init_inputs():
    return [6, 3]
