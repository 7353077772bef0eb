"""A CNN that is equivariant to rotations by 45 degrees: steerable kernels, pooling over the group."""

import torch
from escnn import gspaces, nn


class Model(torch.nn.Module):
    def __init__(self, rotations, fields):
        super().__init__()
        space = gspaces.rot2dOnR2(N=rotations)
        self.input_type = nn.FieldType(space, [space.trivial_repr])
        layers, size = [nn.MaskModule(self.input_type, 29, margin=1)], self.input_type
        for count in fields:
            hidden = nn.FieldType(space, count * [space.regular_repr])
            layers += [
                nn.R2Conv(size, hidden, kernel_size=5, padding=2, bias=False),
                nn.InnerBatchNorm(hidden),
                nn.ReLU(hidden),
                nn.PointwiseAvgPoolAntialiased(hidden, sigma=0.66, stride=2),
            ]
            size = hidden
        self.features = nn.SequentialModule(*layers)
        self.pool = nn.GroupPooling(size)
        self.head = torch.nn.Linear(fields[-1], 10)

    def forward(self, image):
        features = self.pool(self.features(nn.GeometricTensor(image, self.input_type)))
        return self.head(features.tensor.mean((2, 3)))


def get_inputs():
    return [torch.randn(2, 1, 29, 29)]


def get_init_inputs():
    return [8, [6, 8]]
