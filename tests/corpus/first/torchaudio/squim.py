"""torchaudio's SQUIM: three objective scores of speech by dual path LSTMs with attention."""

import torch
from torchaudio.models import squim_objective_model


class Model(torch.nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.net = squim_objective_model(
            feat_dim=width,
            win_len=64,
            d_model=width,
            nhead=4,
            hidden_dim=width,
            num_blocks=blocks,
            rnn_type="LSTM",
            chunk_size=31,
        )

    def forward(self, wave):
        return self.net(wave)


def get_inputs():
    return [torch.randn(1, 4000)]


def get_init_inputs():
    return [48, 2]
