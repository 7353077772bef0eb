"""F5-TTS's DiT: text by ConvNeXt blocks beside a mel spectrogram, adaptive norms by the flow's
time."""

import torch
from f5_tts.model.backbones.dit import DiT


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.net = DiT(
            dim=dim,
            depth=depth,
            heads=4,
            dim_head=32,
            ff_mult=2,
            mel_dim=100,
            text_num_embeds=256,
            text_dim=64,
            conv_layers=2,
        )

    def forward(self, noisy, reference, text, time, mask):
        return self.net(noisy, reference, text, time, mask=mask)


def get_inputs():
    mask = torch.ones(2, 64).bool()
    mask[1, 56:] = False
    return [
        torch.randn(2, 64, 100),
        torch.randn(2, 64, 100),
        torch.randint(0, 256, (2, 40)),
        torch.rand(2),
        mask,
    ]


def get_init_inputs():
    return [128, 3]
