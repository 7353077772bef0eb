"""SAM 2's image encoder: Hiera with windows and pooled queries, and the neck's three levels."""

import torch
from sam2.modeling.backbones.hieradet import Hiera
from sam2.modeling.backbones.image_encoder import FpnNeck, ImageEncoder
from sam2.modeling.position_encoding import PositionEmbeddingSine


class Model(torch.nn.Module):
    def __init__(self, dim, stages):
        super().__init__()
        trunk = Hiera(
            embed_dim=dim,
            num_heads=1,
            stages=stages,
            global_att_blocks=(5, 7),
            window_pos_embed_bkg_spatial_size=(7, 7),
        )
        neck = FpnNeck(
            position_encoding=PositionEmbeddingSine(num_pos_feats=256, normalize=True),
            d_model=256,
            backbone_channel_list=trunk.channel_list,
            fpn_top_down_levels=[2, 3],
            fpn_interp_model="nearest",
        )
        self.net = ImageEncoder(trunk, neck, scalp=1)

    def forward(self, image):
        return self.net(image)


def get_inputs():
    return [torch.rand(1, 3, 256, 256)]


def get_init_inputs():
    return [64, (1, 2, 6, 2)]
