"""MDX23C (TFC-TDF v3) of audio-separator: STFT, sub-bands as channels, U-Net of convolution and
frequency-dense blocks, inverse STFT per stem.
"""

import torch
from audio_separator.separator.uvr_lib_v5.tfc_tdf_v3 import TFC_TDF_net
from ml_collections import ConfigDict


class Model(torch.nn.Module):
    def __init__(self, channels, scales):
        super().__init__()
        settings = {
            "audio": {
                "n_fft": 2048,
                "hop_length": 512,
                "dim_f": 1024,
                "num_channels": 2,
            },
            "training": {"instruments": ["vocals", "drums", "bass"], "target_instrument": None},
            "model": {
                "act": "gelu",
                "norm": "InstanceNorm",
                "num_subbands": 4,
                "num_scales": scales,
                "scale": [2, 2],
                "num_blocks_per_scale": 2,
                "num_channels": channels,
                "growth": channels,
                "bottleneck_factor": 4,
            },
        }
        self.net = TFC_TDF_net(ConfigDict(settings), device=torch.device("cpu"))

    def forward(self, audio):
        return self.net(audio)


def get_inputs():
    return [torch.randn(1, 2, 512 * 63) * 0.2]


def get_init_inputs():
    return [32, 4]
