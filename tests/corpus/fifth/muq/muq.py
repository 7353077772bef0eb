"""MuQ: a conformer for music on mel spectrograms; the hidden states of its layers."""

import torch
from muq import MuQ, MuQConfig
from transformers import Wav2Vec2ConformerConfig


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        stat = {"melspec_2048_cnt": 1, "melspec_2048_mean": 6.77, "melspec_2048_std": 18.4}
        config = Wav2Vec2ConformerConfig(
            hidden_size=width,
            num_hidden_layers=4,
            num_attention_heads=8,
            intermediate_size=4 * width,
            position_embeddings_type="rotary",
        )
        settings = {k: v for k, v in config.to_dict().items() if not isinstance(v, dict)}
        self.net = MuQ(
            MuQConfig(
                encoder_dim=width,
                encoder_depth=4,
                conv_dim=128,
                features=["melspec_2048"],
                stat=stat,
                w2v2_config=settings,
            )
        )

    def forward(self, audio):
        result = self.net(audio, output_hidden_states=True)
        return result.last_hidden_state, result.hidden_states


def get_inputs():
    return [0.1 * torch.randn(1, 48000)]


def get_init_inputs():
    return [256]
