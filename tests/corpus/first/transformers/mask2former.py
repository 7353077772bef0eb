"""transformers' Mask2Former over Swin: masked attention, a decoder of pixels."""

import torch
from transformers import Mask2FormerConfig, Mask2FormerForUniversalSegmentation, SwinConfig


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        backbone = SwinConfig(
            image_size=64,
            embed_dim=16,
            depths=[2, 2, 2, 2],
            num_heads=[2, 2, 4, 4],
            window_size=4,
            out_features=["stage1", "stage2", "stage3", "stage4"],
        )
        self.net = Mask2FormerForUniversalSegmentation(
            Mask2FormerConfig(
                backbone_config=backbone,
                feature_size=32,
                mask_feature_size=32,
                hidden_dim=32,
                encoder_feedforward_dim=64,
                encoder_layers=2,
                decoder_layers=3,
                num_attention_heads=4,
                dim_feedforward=64,
                num_queries=8,
                num_labels=5,
            )
        )

    def forward(self, image):
        output = self.net(pixel_values=image)
        return output.class_queries_logits, output.masks_queries_logits


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
