"""U-Net decoder of TorchSeg on the features of three depths of a plain vision transformer of
timm."""

import torch
import torchseg


class Model(torch.nn.Module):
    def __init__(self, encoder, size, classes):
        super().__init__()
        self.net = torchseg.create_model(
            "unet",
            encoder_name=encoder,
            encoder_weights=None,
            in_channels=3,
            classes=classes,
            encoder_depth=3,
            encoder_indices=(2, 5, 8),
            encoder_params={"scale_factors": [4, 2, 1], "img_size": size},
            decoder_channels=(128, 64, 32),
            decoder_attention_type="scse",
            head_upsampling=8,
        )

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.randn(1, 3, 128, 128)]


def get_init_inputs():
    return ["vit_tiny_patch16_224", 128, 3]
