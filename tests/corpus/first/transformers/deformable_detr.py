"""transformers' Deformable DETR: attention that samples several levels at offsets."""

import torch
from transformers import DeformableDetrConfig, DeformableDetrForObjectDetection, ResNetConfig


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        backbone = ResNetConfig(
            embedding_size=16,
            hidden_sizes=[16, 32, 48, 64],
            depths=[1, 1, 2, 2],
            out_features=["stage2", "stage3", "stage4"],
        )
        self.net = DeformableDetrForObjectDetection(
            DeformableDetrConfig(
                backbone_config=backbone,
                num_queries=10,
                d_model=64,
                encoder_layers=2,
                decoder_layers=2,
                encoder_ffn_dim=128,
                decoder_ffn_dim=128,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                with_box_refine=True,
                two_stage=True,
                two_stage_num_proposals=10,
                num_labels=5,
            )
        )

    def forward(self, image):
        output = self.net(pixel_values=image)
        return output.logits, output.pred_boxes


def get_inputs():
    return [torch.randn(1, 3, 96, 96)]


def get_init_inputs():
    return []
