"""The Inception of the Frechet inception distance: TensorFlow's variant of InceptionV3 with its
average pools, all four feature levels."""

import torch
from pytorch_fid.inception import (
    FIDInceptionA,
    FIDInceptionC,
    FIDInceptionE_1,
    FIDInceptionE_2,
    InceptionV3,
)


class Model(torch.nn.Module):
    def __init__(self, classes):
        super().__init__()
        import pytorch_fid.inception as module

        loader, module.load_state_dict_from_url = module.load_state_dict_from_url, None
        inception = module._inception_v3(num_classes=classes, aux_logits=False, weights=None)
        module.load_state_dict_from_url = loader
        inception.Mixed_5b = FIDInceptionA(192, pool_features=32)
        inception.Mixed_5c = FIDInceptionA(256, pool_features=64)
        inception.Mixed_5d = FIDInceptionA(288, pool_features=64)
        inception.Mixed_6b = FIDInceptionC(768, channels_7x7=128)
        inception.Mixed_6c = FIDInceptionC(768, channels_7x7=160)
        inception.Mixed_6d = FIDInceptionC(768, channels_7x7=160)
        inception.Mixed_6e = FIDInceptionC(768, channels_7x7=192)
        inception.Mixed_7b = FIDInceptionE_1(1280)
        inception.Mixed_7c = FIDInceptionE_2(2048)
        module_builder, module.fid_inception_v3 = module.fid_inception_v3, lambda: inception
        self.net = InceptionV3(output_blocks=(0, 1, 2, 3), resize_input=True)
        module.fid_inception_v3 = module_builder

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.rand(1, 3, 96, 96)]


def get_init_inputs():
    return [1008]
