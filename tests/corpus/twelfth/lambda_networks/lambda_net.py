"""Small image classifier with a local and a global lambda layer."""

import torch
from lambda_networks import LambdaLayer
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU()
        )
        self.local = LambdaLayer(32, dim_out=32, r=7, dim_k=16, heads=4, dim_u=4)
        self.down = nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.whole = LambdaLayer(64, dim_out=64, n=8, dim_k=16, heads=4, dim_u=1)
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        x = self.stem(x)
        x = torch.relu(x + self.local(x))
        x = self.down(x)
        x = torch.relu(x + self.whole(x))
        return self.head(x.mean(dim=(2, 3)))


def get_inputs():
    return [torch.randn(2, 3, 32, 32)]


def get_init_inputs():
    return [10]
