"""Visual encoder with spatial softmax and a recurrent head, from robomimic."""

import torch
from robomimic.models.base_nets import MLP, RNN_Base, ShallowConv, SpatialSoftmax
from torch import nn


class Model(nn.Module):
    def __init__(self, keypoints, hidden, actions):
        super().__init__()
        self.conv = ShallowConv(input_channel=3, output_channel=32)
        self.pool = SpatialSoftmax(self.conv.output_shape([3, 76, 76]), num_kp=keypoints)
        self.rnn = RNN_Base(input_dim=2 * keypoints + 9, rnn_hidden_dim=hidden, rnn_num_layers=2)
        self.head = MLP(hidden, actions, [hidden, hidden], normalization=True)

    def forward(self, images, joints):
        points = self.pool(self.conv(images.flatten(0, 1))).flatten(1)
        out = self.rnn(torch.cat([points.view(*images.shape[:2], -1), joints], -1))
        return self.head(out), points


def get_inputs():
    return [torch.rand(2, 5, 3, 76, 76), torch.randn(2, 5, 9)]


def get_init_inputs():
    return [24, 200, 7]
