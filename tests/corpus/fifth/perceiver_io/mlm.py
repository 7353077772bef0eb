"""Perceiver IO of perceiver-io for masked text: latents, repeated block, tied output embedding."""

import torch
from perceiver.model.core.config import PerceiverConfig
from perceiver.model.text.common import TextEncoderConfig
from perceiver.model.text.mlm import MaskedLanguageModel, TextDecoderConfig


class Model(torch.nn.Module):
    def __init__(self, width, latents):
        super().__init__()
        encoder = TextEncoderConfig(
            vocab_size=262,
            max_seq_len=256,
            num_input_channels=width,
            num_cross_attention_qk_channels=128,
            num_cross_attention_v_channels=320,
            num_self_attention_qk_channels=128,
            num_self_attention_v_channels=320,
            num_self_attention_layers_per_block=4,
            num_self_attention_blocks=2,
        )
        decoder = TextDecoderConfig(
            vocab_size=262,
            max_seq_len=256,
            num_cross_attention_qk_channels=128,
            num_cross_attention_v_channels=width,
            cross_attention_residual=False,
        )
        self.net = MaskedLanguageModel(
            PerceiverConfig(encoder, decoder, num_latents=latents, num_latent_channels=320)
        )

    def forward(self, text, padding):
        return self.net(text, padding)


def get_inputs():
    padding = torch.arange(200)[None] >= torch.tensor([200, 140])[:, None]
    return [torch.randint(0, 262, (2, 200)), padding]


def get_init_inputs():
    return [192, 64]
