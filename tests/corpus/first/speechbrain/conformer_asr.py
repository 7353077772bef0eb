"""speechbrain's TransformerASR: a Conformer with relative positions, a decoder of text with
both masks."""

import torch
from speechbrain.lobes.models.transformer.TransformerASR import TransformerASR


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = TransformerASR(
            200,
            40,
            d_model=width,
            nhead=4,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            d_ffn=2 * width,
            normalize_before=True,
            encoder_module="conformer",
            attention_type="RelPosMHAXL",
            kernel_size=15,
        )

    def forward(self, frames, text, lengths):
        return self.net(frames, text, lengths)


def get_inputs():
    return [torch.randn(2, 40, 40), torch.randint(1, 200, (2, 12)), torch.tensor([1.0, 0.6])]


def get_init_inputs():
    return [64, 2]
