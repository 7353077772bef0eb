"""segmentation_models_pytorch's SegFormer over a mix transformer, with a head that classifies."""

import segmentation_models_pytorch as smp
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = smp.Segformer(
            "mit_b0", encoder_weights=None, classes=4, aux_params={"classes": 7, "pooling": "max"}
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
