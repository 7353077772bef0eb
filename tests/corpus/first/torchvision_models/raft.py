"""torchvision's small RAFT: optical flow, refined by a recurrent update."""

import torch
from torchvision.models.optical_flow import raft_small


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = raft_small(weights=None)

    def forward(self, first, second):
        return self.net(first, second, num_flow_updates=3)


def get_inputs():
    return [torch.rand(1, 3, 128, 128), torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return []
