"""NowcastNet: learned advection of radar frames, then a generator conditioned on them and on noise;
precipitation of the next frames."""

from argparse import Namespace

import torch
from nowcastnet.model.nowcastnet import NowcastNet


class Model(torch.nn.Module):
    def __init__(self, past, future, side):
        super().__init__()
        self.model = NowcastNet(
            Namespace(
                device="cpu",
                batch_size=1,
                input_length=past,
                pred_length=future,
                total_length=past + future,
                image_height=side,
                image_width=side,
                generator_base_channels=32,
                gen_decoder_input_channels=320,
            )
        )

    def forward(self, frames, noise):
        return self.model(frames, noise)


def get_inputs():
    return [torch.rand(1, 9, 128, 128) * 40, torch.randn(1, 32, 4, 4)]


def get_init_inputs():
    return [9, 10, 128]
