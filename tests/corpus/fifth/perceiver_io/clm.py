"""Perceiver AR of perceiver-io: causal text model with a long prefix and rotary positions."""

import torch
from perceiver.model.text.clm import CausalLanguageModel, CausalLanguageModelConfig


class Model(torch.nn.Module):
    def __init__(self, channels, layers):
        super().__init__()
        self.net = CausalLanguageModel(
            CausalLanguageModelConfig(
                vocab_size=262,
                max_seq_len=256,
                num_latents=64,
                num_channels=channels,
                num_heads=8,
                num_self_attention_layers=layers,
                cross_attention_dropout=0.5,
            )
        )

    def forward(self, text):
        return self.net(text)


def get_inputs():
    return [torch.randint(0, 262, (2, 256))]


def get_init_inputs():
    return [256, 6]
