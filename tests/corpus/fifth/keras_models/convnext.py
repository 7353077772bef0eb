"""Keras on its torch backend: ConvNeXt-Tiny of keras.applications as a torch module."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch


class Model(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = keras.applications.ConvNeXtTiny(
            weights=None, input_shape=(size, size, 3), classes=100
        )

    def forward(self, images):
        return self.net(images, training=False)


def get_inputs():
    return [255 * torch.rand(1, 96, 96, 3)]


def get_init_inputs():
    return [96]
