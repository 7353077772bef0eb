"""Differentiable speech processing: mel-cepstral analysis by Newton steps and resynthesis.

The waveform is framed and windowed, its power spectrum turned into mel-cepstra, a pulse train made
from the pitch and filtered by the MLSA filter.
"""

import diffsptk
import torch


class Model(torch.nn.Module):
    def __init__(self, fft, order, period):
        super().__init__()
        self.stft = diffsptk.STFT(frame_length=400, frame_period=period, fft_length=fft)
        self.analysis = diffsptk.MelCepstralAnalysis(
            fft_length=fft, cep_order=order, alpha=0.42, n_iter=5
        )
        self.excite = diffsptk.ExcitationGeneration(
            period, voiced_region="pulse", unvoiced_region="zeros"
        )
        self.filter = diffsptk.PseudoMGLSADigitalFilter(
            filter_order=order,
            frame_period=period,
            alpha=0.42,
            ignore_gain=True,
            phase="minimum",
            mode="multi-stage",
            cep_order=199,
            taylor_order=20,
        )

    def forward(self, audio, pitch):
        cepstra = self.analysis(self.stft(audio))
        return cepstra, self.filter(self.excite(pitch), cepstra)


def get_inputs():
    pitch = torch.full((2, 50), 100.0) + torch.randn(2, 50) * 5
    pitch[:, 20:30] = 0
    return [torch.randn(2, 4000) * 0.2, pitch]


def get_init_inputs():
    return [512, 24, 80]
