"""FEAT: few-shot classification; the prototypes of the classes look at each other."""

import torch
from easyfsl.methods import FEAT
from easyfsl.modules import MultiHeadAttention, feat_resnet12


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        attention = MultiHeadAttention(1, 640, 640, 640, dropout=0.5)
        self.net = FEAT(feat_resnet12(), attention_module=attention)
        self.register_buffer("labels", torch.arange(classes).repeat_interleave(2))

    def forward(self, support, query):
        self.net.process_support_set(support, self.labels)
        return self.net(query)


def get_inputs():
    return [torch.randn(8, 3, 84, 84), torch.randn(3, 3, 84, 84)]


def get_init_inputs():
    return [4]
