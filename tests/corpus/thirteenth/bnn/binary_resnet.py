"""Binary neural network: a ResNet whose blocks have binarised weights and activations."""

import torch
from bnn import BConfig, prepare_binary_model
from bnn.models.resnet import resnet18
from bnn.ops import BasicInputBinarizer, BasicScaleBinarizer, XNORWeightBinarizer
from torch import nn


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        net = resnet18(num_classes=classes)
        self.model = prepare_binary_model(
            net,
            BConfig(
                activation_pre_process=BasicInputBinarizer,
                activation_post_process=BasicScaleBinarizer,
                weight_pre_process=XNORWeightBinarizer,
            ),
        )

    def forward(self, img):
        return self.model(img)


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return [100]
