"""Zorro: masked multimodal fusion transformer for audio and video."""

import torch
from torch import nn
from zorro_pytorch import TokenTypes as T
from zorro_pytorch import Zorro


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = Zorro(
            dim=dim,
            depth=depth,
            dim_head=32,
            heads=4,
            audio_patch_size=16,
            video_patch_size=16,
            num_fusion_tokens=16,
            video_temporal_patch_size=2,
            video_channels=3,
            return_token_types=(T.AUDIO, T.AUDIO, T.FUSION, T.GLOBAL, T.VIDEO, T.VIDEO),
        )

    def forward(self, video, audio):
        return self.model(video=video, audio=audio)


def get_inputs():
    return [torch.randn(1, 3, 4, 32, 32), torch.randn(1, 512 * 3)]


def get_init_inputs():
    return [192, 3]
