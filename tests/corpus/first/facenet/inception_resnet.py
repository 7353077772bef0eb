"""facenet-pytorch's Inception-ResNet: a face's embedding of unit length."""

import torch
from facenet_pytorch import InceptionResnetV1


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = InceptionResnetV1(pretrained=None)

    def forward(self, face):
        return self.net(face)


def get_inputs():
    return [torch.randn(1, 3, 112, 112)]


def get_init_inputs():
    return []
