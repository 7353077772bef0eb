"""WavMark: an invertible network on spectrograms hides 32 bits in speech and reads them again."""

import torch
from wavmark.models.my_model import Model as WavMark


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.net = WavMark(16000, num_bit=32, n_fft=1000, hop_length=400, num_layers=layers)

    def forward(self, speech, message):
        marked = self.net.encode(speech, message)
        return marked, self.net.decode(marked)


def get_inputs():
    return [torch.randn(1, 16000) * 0.1, torch.randint(0, 2, (1, 32)).float()]


def get_init_inputs():
    return [3]
