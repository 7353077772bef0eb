"""Audio losses as a model: multi-resolution STFT with a mel scale, A-weighting and SI-SDR terms."""

import torch
from auraloss.freq import MultiResolutionSTFTLoss, SumAndDifferenceSTFTLoss
from auraloss.perceptual import FIRFilter
from auraloss.time import ESRLoss, SISDRLoss


class Model(torch.nn.Module):
    def __init__(self, rate, mels):
        super().__init__()
        self.spectral = MultiResolutionSTFTLoss(
            fft_sizes=[1024, 2048, 4096],
            hop_sizes=[256, 512, 1024],
            win_lengths=[1024, 2048, 4096],
            scale="mel",
            n_bins=mels,
            sample_rate=rate,
            w_sc=1.0,
            w_lin_mag=0.5,
            scale_invariance=False,
            perceptual_weighting=True,
        )
        self.stereo = SumAndDifferenceSTFTLoss(
            fft_sizes=[512, 1024, 2048], hop_sizes=[128, 256, 512], win_lengths=[512, 1024, 2048]
        )
        self.weighting = FIRFilter(filter_type="aw", fs=rate)
        self.time = torch.nn.ModuleList([ESRLoss(), SISDRLoss()])

    def forward(self, estimate, target):
        left, right = self.weighting(estimate[:, :1], target[:, :1])
        return (
            self.spectral(estimate, target),
            self.stereo(estimate, target),
            [loss(left, right) for loss in self.time],
        )


def get_inputs():
    target = torch.randn(2, 2, 44100) * 0.2
    return [target + torch.randn(2, 2, 44100) * 0.05, target]


def get_init_inputs():
    return [44100, 64]
