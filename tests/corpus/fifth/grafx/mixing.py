"""An audio chain with its parameters learned: equaliser, compressor, distortion and reverb."""

import torch
from grafx.processors import (
    ApproxCompressor,
    StereoGain,
    STFTMaskedNoiseReverb,
    TanhDistortion,
    ZeroPhaseFIREqualizer,
)


class Model(torch.nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.chain = torch.nn.ModuleList(
            [
                ZeroPhaseFIREqualizer(num_magnitude_bins=bins),
                ApproxCompressor(),
                TanhDistortion(),
                STFTMaskedNoiseReverb(ir_len=8000),
                StereoGain(),
            ]
        )
        self.embed = torch.nn.Linear(32, 128)
        self.heads = torch.nn.ModuleList()
        for processor in self.chain:
            sizes = processor.parameter_size()
            shapes = {k: (v,) if isinstance(v, int) else tuple(v) for k, v in sizes.items()}
            heads = {k: torch.nn.Linear(128, torch.Size(v).numel()) for k, v in shapes.items()}
            self.heads.append(torch.nn.ModuleDict(heads))
        self.shapes = [
            {k: (v,) if isinstance(v, int) else tuple(v) for k, v in p.parameter_size().items()}
            for p in self.chain
        ]

    def forward(self, audio, style):
        hidden = torch.tanh(self.embed(style))
        for processor, heads, shapes in zip(self.chain, self.heads, self.shapes, strict=True):
            values = {k: 0.1 * heads[k](hidden).view(-1, *shape) for k, shape in shapes.items()}
            audio = processor(audio, **values)
            audio = audio[0] if isinstance(audio, tuple) else audio
        return audio


def get_inputs():
    return [0.1 * torch.randn(2, 2, 16384), torch.randn(2, 32)]


def get_init_inputs():
    return [256]
