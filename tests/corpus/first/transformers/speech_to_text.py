"""transformers' Speech2Text: strided convolutions of frames, an encoder, a decoder with
sinusoidal positions."""

import torch
from transformers import Speech2TextConfig, Speech2TextModel


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = Speech2TextConfig(
            vocab_size=200,
            d_model=width,
            encoder_layers=layers,
            decoder_layers=layers,
            encoder_attention_heads=4,
            decoder_attention_heads=4,
            encoder_ffn_dim=2 * width,
            decoder_ffn_dim=2 * width,
            conv_channels=64,
            input_feat_per_channel=40,
            max_source_positions=200,
            max_target_positions=64,
        )
        self.net = Speech2TextModel(config)

    def forward(self, frames, mask, text):
        return self.net(
            frames, attention_mask=mask, decoder_input_ids=text, use_cache=False
        ).last_hidden_state


def get_inputs():
    return [
        torch.randn(2, 80, 40),
        (torch.arange(80) < torch.tensor([[80], [60]])).long(),
        torch.randint(2, 200, (2, 12)),
    ]


def get_init_inputs():
    return [64, 2]
