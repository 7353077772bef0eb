"""docTR's LinkNet for text detection: a ResNet-18's stages added to the decoder's; a probability
map."""

import torch
from doctr.models.detection.linknet.pytorch import linknet_resnet18


class Model(torch.nn.Module):
    def __init__(self, pretrained):
        super().__init__()
        self.net = linknet_resnet18(pretrained=pretrained, pretrained_backbone=False)

    def forward(self, page):
        return self.net(page, return_model_output=True)["out_map"]


def get_inputs():
    return [torch.rand(1, 3, 128, 128)]


def get_init_inputs():
    return [False]
