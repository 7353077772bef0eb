"""fastai's DynamicUnet: a ResNet encoder, pixel-shuffled up to the mask of a picture."""

import torch
from fastai.vision.learner import create_body
from fastai.vision.models import resnet18
from fastai.vision.models.unet import DynamicUnet


class Model(torch.nn.Module):
    def __init__(self, classes, size):
        super().__init__()
        body = create_body(resnet18(weights=None), pretrained=False)
        self.net = DynamicUnet(body, classes, (size, size), self_attention=True)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [12, 96]
