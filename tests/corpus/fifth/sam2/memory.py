"""SAM 2's video memory: masks into memories, attention with rotary positions to two of them."""

import torch
from sam2.modeling.memory_attention import MemoryAttention, MemoryAttentionLayer
from sam2.modeling.memory_encoder import CXBlock, Fuser, MaskDownSampler, MemoryEncoder
from sam2.modeling.position_encoding import PositionEmbeddingSine
from sam2.modeling.sam.transformer import RoPEAttention


class Model(torch.nn.Module):
    def __init__(self, layers, size):
        super().__init__()
        self.encoder = MemoryEncoder(
            out_dim=64,
            mask_downsampler=MaskDownSampler(kernel_size=3, stride=2, padding=1),
            fuser=Fuser(CXBlock(256, kernel_size=7, padding=3, use_dwconv=True), num_layers=2),
            position_encoding=PositionEmbeddingSine(num_pos_feats=64, normalize=True),
        )
        own = RoPEAttention(
            embedding_dim=256,
            num_heads=1,
            downsample_rate=1,
            dropout=0.1,
            rope_theta=10000.0,
            feat_sizes=[size, size],
        )
        cross = RoPEAttention(
            embedding_dim=256,
            num_heads=1,
            downsample_rate=1,
            dropout=0.1,
            kv_in_dim=64,
            rope_theta=10000.0,
            rope_k_repeat=True,
            feat_sizes=[size, size],
        )
        layer = MemoryAttentionLayer(
            activation="relu",
            cross_attention=cross,
            d_model=256,
            dim_feedforward=1024,
            dropout=0.1,
            pos_enc_at_attn=False,
            pos_enc_at_cross_attn_keys=True,
            pos_enc_at_cross_attn_queries=False,
            self_attention=own,
        )
        self.attention = MemoryAttention(256, True, layer, layers)

    def forward(self, frame, position, features, masks):
        memory = self.encoder(features, masks)
        spatial = memory["vision_features"].flatten(2)
        encoded = memory["vision_pos_enc"][0].flatten(2)
        keys = torch.cat([part.permute(1, 0)[:, None] for part in spatial.movedim(0, 0)])
        places = torch.cat([part.permute(1, 0)[:, None] for part in encoded])
        return self.attention(frame, keys, position, places)


def get_inputs():
    return [
        torch.randn(256, 1, 256),
        torch.randn(256, 1, 256),
        torch.randn(2, 256, 16, 16),
        torch.randn(2, 1, 256, 256),
    ]


def get_init_inputs():
    return [4, 16]
