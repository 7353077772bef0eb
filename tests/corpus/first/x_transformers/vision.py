"""x-transformers' ViTransformerWrapper with register tokens and a sparse (top 8) attention."""

import torch
from x_transformers import Encoder, ViTransformerWrapper


class Model(torch.nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.net = ViTransformerWrapper(
            image_size=64,
            patch_size=8,
            num_classes=10,
            num_register_tokens=4,
            attn_layers=Encoder(
                dim=width,
                depth=depth,
                heads=4,
                attn_dim_head=16,
                attn_sparse_topk=8,
                ff_relu_squared=True,
                use_scalenorm=True,
            ),
        )

    def forward(self, images):
        return self.net(images)


def get_inputs():
    return [torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return [64, 3]
