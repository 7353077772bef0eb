"""transformers' wav2vec 2.0 with a CTC head: a convolution over positions whose weight norm is
its own."""

import torch
from transformers import Wav2Vec2Config, Wav2Vec2ForCTC


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = Wav2Vec2Config(
            vocab_size=32,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=4,
            intermediate_size=2 * width,
            conv_dim=(32, 32, 32),
            conv_stride=(5, 4, 2),
            conv_kernel=(10, 6, 3),
            num_conv_pos_embeddings=16,
            num_conv_pos_embedding_groups=4,
            do_stable_layer_norm=True,
            feat_extract_norm="layer",
        )
        self.net = Wav2Vec2ForCTC(config)

    def forward(self, wave, mask):
        return self.net(wave, attention_mask=mask).logits


def get_inputs():
    return [torch.randn(2, 3000), (torch.arange(3000) < torch.tensor([[3000], [2200]])).long()]


def get_init_inputs():
    return [64, 3]
