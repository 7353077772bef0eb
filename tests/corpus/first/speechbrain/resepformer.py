"""speechbrain's RE-SepFormer: segments of speech with a memory transformer between them."""

import torch
from speechbrain.lobes.models.resepformer import (
    ResourceEfficientSeparator,
    SBTransformerBlock_wnormandskip,
)


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()

        def block():
            return SBTransformerBlock_wnormandskip(
                num_layers=2,
                d_model=width,
                nhead=4,
                d_ffn=2 * width,
                use_positional_encoding=True,
                norm_before=True,
                use_norm=True,
                use_skip=True,
            )

        self.net = ResourceEfficientSeparator(
            width,
            causal=False,
            layer=layers,
            unit=width,
            segment_size=25,
            mem_type="av",
            seg_model=block(),
            mem_model=block(),
        )

    def forward(self, frames):
        return self.net(frames)


def get_inputs():
    return [torch.randn(1, 64, 110)]


def get_init_inputs():
    return [64, 2]
