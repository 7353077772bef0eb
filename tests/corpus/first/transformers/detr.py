"""transformers' DETR: boxes from queries that attend to a ResNet's features."""

import torch
from transformers import DetrConfig, DetrForObjectDetection, ResNetConfig


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        backbone = ResNetConfig(
            embedding_size=16,
            hidden_sizes=[16, 32, 48, 64],
            depths=[2, 2, 2, 2],
            out_features=["stage4"],
            layer_type="basic",
        )
        self.net = DetrForObjectDetection(
            DetrConfig(
                backbone_config=backbone,
                num_queries=10,
                d_model=64,
                encoder_layers=2,
                decoder_layers=2,
                encoder_ffn_dim=128,
                decoder_ffn_dim=128,
                encoder_attention_heads=4,
                decoder_attention_heads=4,
                num_labels=5,
            )
        )

    def forward(self, image, mask):
        output = self.net(pixel_values=image, pixel_mask=mask)
        return output.logits, output.pred_boxes


def get_inputs():
    return [torch.randn(2, 3, 96, 64), torch.ones(2, 96, 64, dtype=torch.long)]


def get_init_inputs():
    return []
