"""Quantisation-aware training layers: 4-bit depthwise-separable convolutions, 8-bit ends.

Weights get a scale per channel from their largest value, activations a learned or counted scale;
everything stays in floating point (fake quantisation), as users train it.
"""

import itertools

import brevitas.nn as qnn
import torch
from brevitas.quant import Int8ActPerTensorFloat, Int8WeightPerChannelFloat, Uint8ActPerTensorFloat


def separable(inputs, outputs, stride):
    def convolution(left, right, size, step, groups):
        return [
            qnn.QuantConv2d(
                left,
                right,
                size,
                stride=step,
                padding=size // 2,
                groups=groups,
                bias=False,
                weight_quant=Int8WeightPerChannelFloat,
                weight_bit_width=4,
            ),
            torch.nn.BatchNorm2d(right),
            qnn.QuantReLU(act_quant=Uint8ActPerTensorFloat, bit_width=4),
        ]

    return torch.nn.Sequential(
        *convolution(inputs, inputs, 3, stride, inputs), *convolution(inputs, outputs, 1, 1, 1)
    )


class Model(torch.nn.Module):
    def __init__(self, widths, classes):
        super().__init__()
        self.inputs = qnn.QuantIdentity(act_quant=Int8ActPerTensorFloat)
        self.stem = qnn.QuantConv2d(
            3, widths[0], 3, stride=2, padding=1, weight_quant=Int8WeightPerChannelFloat
        )
        pairs = itertools.pairwise(widths)
        self.blocks = torch.nn.Sequential(
            *(separable(a, b, 1 + i % 2) for i, (a, b) in enumerate(pairs))
        )
        self.head = qnn.QuantLinear(
            widths[-1], classes, bias=True, weight_quant=Int8WeightPerChannelFloat
        )

    def forward(self, images):
        hidden = self.blocks(self.stem(self.inputs(images)))
        return self.head(hidden.mean(dim=(2, 3)))


def get_inputs():
    return [torch.randn(2, 3, 96, 96)]


def get_init_inputs():
    return [[32, 64, 128, 128, 256, 256], 10]
