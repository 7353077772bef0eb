"""torchaudio's Tacotron2: text to mel frames by attention that looks at where it was, teacher
forced."""

import torch
from torchaudio.models import Tacotron2


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = Tacotron2(
            n_mels=40,
            n_symbol=60,
            symbol_embedding_dim=width,
            encoder_embedding_dim=width,
            decoder_rnn_dim=width,
            attention_rnn_dim=width,
            attention_hidden_dim=32,
            prenet_dim=32,
            postnet_embedding_dim=width,
        )

    def forward(self, tokens, lengths, mel, mel_lengths):
        return self.net(tokens, lengths, mel, mel_lengths)


def get_inputs():
    return [
        torch.randint(0, 60, (2, 20)),
        torch.tensor([20, 14]),
        torch.randn(2, 40, 12),
        torch.tensor([12, 9]),
    ]


def get_init_inputs():
    return [64]
