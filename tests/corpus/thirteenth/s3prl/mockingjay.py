"""s3prl: Mockingjay, a masked acoustic transformer with a spectrogram prediction head."""

import torch
from s3prl.upstream.mockingjay.model import (
    TransformerConfig,
    TransformerModel,
    TransformerSpecPredictionHead,
)
from torch import nn


class Model(nn.Module):
    def __init__(self, hidden, layers):
        super().__init__()
        config = TransformerConfig(
            {
                "hidden_size": hidden,
                "num_hidden_layers": layers,
                "num_attention_heads": 4,
                "intermediate_size": 4 * hidden,
                "hidden_act": "gelu",
                "hidden_dropout_prob": 0.1,
                "attention_probs_dropout_prob": 0.1,
                "initializer_range": 0.02,
                "layer_norm_eps": 1e-12,
                "share_layer": False,
                "pre_layer_norm": False,
            }
        )
        self.model = TransformerModel(config, 80)
        self.head = TransformerSpecPredictionHead(config, 80)

    def forward(self, spec, positions):
        hidden = self.model(
            spec, positions, torch.ones(spec.shape[:2]), output_all_encoded_layers=False
        )
        return self.head(hidden[0] if isinstance(hidden, tuple) else hidden)


def get_inputs():
    return [torch.randn(2, 60, 80), torch.randn(2, 60, 128)]


def get_init_inputs():
    return [128, 3]
