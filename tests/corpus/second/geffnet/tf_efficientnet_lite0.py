"""EfficientNet-Lite with TensorFlow's SAME padding."""

import geffnet
import torch


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.net = geffnet.create_model(
            "tf_efficientnet_lite0", pretrained=False, num_classes=classes
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 160, 160)]


def get_init_inputs():
    return [100]
