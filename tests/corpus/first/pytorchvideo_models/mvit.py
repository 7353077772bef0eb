"""pytorchvideo's multiscale vision transformer: attention over pooled keys, class token apart."""

import torch
from pytorchvideo.models.vision_transformers import create_multiscale_vision_transformers


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = create_multiscale_vision_transformers(
            spatial_size=32,
            temporal_size=4,
            depth=4,
            patch_embed_dim=24,
            conv_patch_embed_kernel=(3, 7, 7),
            num_heads=1,
            embed_dim_mul=[[1, 2.0], [3, 2.0]],
            atten_head_mul=[[1, 2.0], [3, 2.0]],
            pool_q_stride_size=[[1, 1, 2, 2], [3, 1, 2, 2]],
            pool_kv_stride_adaptive=[1, 4, 4],
            pool_kvq_kernel=[3, 3, 3],
            head_num_classes=10,
        )

    def forward(self, video):
        return self.net(video)


def get_inputs():
    return [torch.randn(1, 3, 4, 32, 32)]


def get_init_inputs():
    return []
