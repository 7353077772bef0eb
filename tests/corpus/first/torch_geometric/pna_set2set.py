"""torch_geometric's PNAConv (four aggregators, three scalers), read out by Set2Set's LSTM."""

import torch
from torch_geometric.nn import BatchNorm, PNAConv, Set2Set


class Model(torch.nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        degrees = torch.tensor([2, 10, 40, 60, 30, 8])
        aggregators, scalers = (
            ["mean", "min", "max", "std"],
            ["identity", "amplification", "attenuation"],
        )
        self.embed = torch.nn.Embedding(21, channels)
        self.convs = torch.nn.ModuleList(
            PNAConv(
                channels,
                channels,
                aggregators,
                scalers,
                degrees,
                edge_dim=8,
                towers=4,
                divide_input=False,
            )
            for _ in range(layers)
        )
        self.norms = torch.nn.ModuleList(BatchNorm(channels) for _ in range(layers))
        self.pool = Set2Set(channels, 3)
        self.head = torch.nn.Linear(2 * channels, 1)

    def forward(self, kinds, edge_index, edge_attr):
        x = self.embed(kinds)
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x, edge_index, edge_attr)).relu()
        return self.head(self.pool(x, torch.arange(3).repeat_interleave(20)))


def get_inputs():
    edges = torch.cat([torch.randint(20 * i, 20 * i + 20, (2, 50)) for i in range(3)], 1)
    return [torch.randint(0, 21, (60,)), edges, torch.randn(150, 8)]


def get_init_inputs():
    return [32, 3]
