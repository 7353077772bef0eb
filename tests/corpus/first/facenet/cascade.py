"""facenet-pytorch's proposal and output networks of MTCNN."""

import torch
from facenet_pytorch.models.mtcnn import ONet, PNet


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.propose = PNet(pretrained=False)
        self.refine = ONet(pretrained=False)

    def forward(self, image, crops):
        return self.propose(image), self.refine(crops)


def get_inputs():
    return [torch.randn(1, 3, 40, 60), torch.randn(3, 3, 48, 48)]


def get_init_inputs():
    return []
