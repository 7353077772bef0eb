"""SpeechTokenizer: a SEANet encoder with a bidirectional LSTM, eight residual codebooks of which
the first holds the meaning, and the decoder back to a waveform."""

import torch
from speechtokenizer import SpeechTokenizer


class Model(torch.nn.Module):
    def __init__(self, filters, codebooks, codes):
        super().__init__()
        self.net = SpeechTokenizer(
            {
                "n_filters": filters,
                "dimension": 256,
                "semantic_dimension": 192,
                "strides": [8, 5, 4, 2],
                "lstm_layers": 2,
                "bidirectional": True,
                "dilation_base": 2,
                "residual_kernel_size": 3,
                "n_residual_layers": 1,
                "activation": "ELU",
                "sample_rate": 16000,
                "n_q": codebooks,
                "codebook_size": codes,
            }
        )
        for layer in self.net.quantizer.vq.layers:
            book = layer._codebook
            book.embed.copy_(torch.randn_like(book.embed) * 0.1)
            book.inited.fill_(True)

    def forward(self, audio):
        codes = self.net.encode(audio)
        return codes, self.net.decode(codes)


def get_inputs():
    return [torch.randn(1, 1, 6400) * 0.3]


def get_init_inputs():
    return [16, 8, 512]
