"""Sockeye translation encoder with valid lengths."""

import torch
from sockeye.encoder import TransformerEncoder
from sockeye.transformer import TransformerConfig
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        config = TransformerConfig(
            model_size=128,
            attention_heads=4,
            feed_forward_num_hidden=256,
            act_type="relu",
            num_layers=3,
            dropout_attention=0.1,
            dropout_act=0.1,
            dropout_prepost=0.1,
            positional_embedding_type="fixed",
            preprocess_sequence="n",
            postprocess_sequence="dr",
            max_seq_len_source=64,
            max_seq_len_target=64,
            use_lhuc=True,
        )
        self.model = TransformerEncoder(config)

    def forward(self, data, lengths):
        return self.model(data, lengths)


def get_inputs():
    return [torch.randn(2, 20, 128), torch.tensor([[20, 0], [13, 0]], dtype=torch.int32)]


def get_init_inputs():
    return []
