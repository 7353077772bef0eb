"""transformers' DeBERTa-v2: attention between contents and relative positions, with a
convolution in its first layer."""

import torch
from transformers import DebertaV2Config, DebertaV2Model


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = DebertaV2Config(
            vocab_size=300,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=2 * width,
            max_position_embeddings=64,
            relative_attention=True,
            position_buckets=16,
            pos_att_type=["p2c", "c2p"],
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            conv_kernel_size=3,
            conv_act="gelu",
        )
        self.net = DebertaV2Model(config)

    def forward(self, tokens, mask):
        return self.net(tokens, attention_mask=mask).last_hidden_state


def get_inputs():
    return [torch.randint(0, 300, (2, 32)), (torch.arange(32) < torch.tensor([[32], [20]])).long()]


def get_init_inputs():
    return [64, 3]
