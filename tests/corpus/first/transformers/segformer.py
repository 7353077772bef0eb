"""transformers' SegFormer: attention over reduced sequences, a head of linear layers."""

import torch
from transformers import SegformerConfig, SegformerForSemanticSegmentation


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = SegformerForSemanticSegmentation(
            SegformerConfig(
                depths=[2, 2, 2, 2],
                hidden_sizes=[16, 32, 48, 64],
                num_attention_heads=[1, 2, 4, 4],
                decoder_hidden_size=64,
                num_labels=5,
            )
        )

    def forward(self, image):
        return self.net(pixel_values=image).logits


def get_inputs():
    return [torch.randn(1, 3, 64, 64)]


def get_init_inputs():
    return []
