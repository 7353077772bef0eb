"""YAMNet: MobileNet's depthwise blocks with TensorFlow's padding, on log-mel patches; embeddings
and the probabilities of 521 sounds."""

import torch
from torch_vggish_yamnet.yamnet.model import YAMNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = YAMNet()

    def forward(self, patches):
        return self.net(patches, to_prob=True)


def get_inputs():
    return [torch.randn(3, 1, 96, 64)]


def get_init_inputs():
    return []
