"""SilentCipher: a message is spread over the magnitudes of a spectrogram, hidden under the carrier
and read back by a gated convolutional decoder."""

from types import SimpleNamespace

import torch
from silentcipher.model import CarrierDecoder, Encoder, MsgDecoder


class Model(torch.nn.Module):
    def __init__(self, fft, message, band):
        super().__init__()
        config = SimpleNamespace(ensure_negative_message=True, no_normalization=False)
        self.fft = fft
        self.encoder = Encoder(
            out_dim=32, n_layers=3, message_dim=message, message_band_size=band, n_fft=fft
        )
        self.carrier = CarrierDecoder(config, 32 + 1 + 1, n_layers=4, message_band_size=band)
        self.decoder = MsgDecoder(
            message_dim=message, message_band_size=band, channel_dim=64, num_layers=6
        )

    def forward(self, audio, message):
        window = torch.hann_window(self.fft)
        bins = torch.stft(audio, self.fft, self.fft // 4, window=window, return_complex=True)
        size = bins.abs()[:, None]
        spread = self.encoder.transform_message(message)
        hidden = self.carrier(torch.cat([self.encoder(size), size, spread], dim=1), 30.0)
        size = (size - hidden).relu()
        marked = torch.istft(
            torch.polar(size[:, 0], bins.angle()), self.fft, self.fft // 4, window=window
        )
        return marked, self.decoder(size)


def get_inputs():
    message = torch.nn.functional.one_hot(torch.randint(0, 5, (1, 1, 32)), 5).float()
    return [torch.randn(1, 3968) * 0.3, message.transpose(2, 3)]


def get_init_inputs():
    return [512, 5, 200]
