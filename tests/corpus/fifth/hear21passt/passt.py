"""PaSST: a vision transformer on a spectrogram, with embeddings of time and of frequency."""

import torch
from hear21passt.models.passt import PaSST


class Model(torch.nn.Module):
    def __init__(self, frames):
        super().__init__()
        self.net = PaSST(
            stride=(10, 10),
            img_size=(128, frames),
            patch_size=16,
            in_chans=1,
            num_classes=527,
            embed_dim=384,
            depth=6,
            num_heads=6,
            distilled=True,
        )

    def forward(self, spectrogram):
        return self.net(spectrogram)


def get_inputs():
    return [torch.randn(1, 1, 128, 298)]


def get_init_inputs():
    return [298]
