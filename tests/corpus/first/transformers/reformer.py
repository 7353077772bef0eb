"""transformers' Reformer: local and hashed attention over chunks, with reversible residuals and
axial positions."""

import torch
from transformers import ReformerConfig, ReformerModel


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        config = ReformerConfig(
            vocab_size=200,
            hidden_size=width,
            attn_layers=["local", "lsh", "local"],
            num_attention_heads=4,
            attention_head_size=16,
            feed_forward_size=2 * width,
            axial_pos_shape=(8, 8),
            axial_pos_embds_dim=(width // 4, 3 * width // 4),
            local_attn_chunk_length=16,
            lsh_attn_chunk_length=16,
            num_buckets=8,
            num_hashes=2,
            hash_seed=0,
            max_position_embeddings=64,
        )
        self.net = ReformerModel(config)

    def forward(self, tokens):
        return self.net(tokens, use_cache=False).last_hidden_state


def get_inputs():
    return [torch.randint(0, 200, (1, 64))]


def get_init_inputs():
    return [64]
