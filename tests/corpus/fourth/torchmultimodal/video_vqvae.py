"""VideoGPT's VQ-VAE in TorchMultimodal: strided 3-D convolutions, axial attention over time, height
and width, a codebook, and the video rebuilt."""

import torch
from torchmultimodal.models.video_gpt.video_vqvae import video_vqvae


class Model(torch.nn.Module):
    def __init__(self, hidden, codes):
        super().__init__()
        self.net = video_vqvae(
            in_channel_dim=3,
            encoder_hidden_dim=hidden,
            encoder_kernel_size=3,
            encoder_stride=2,
            encoder_n_layers=2,
            n_res_layers=2,
            attn_hidden_dim=hidden,
            num_embeddings=codes,
            embedding_dim=64,
            decoder_hidden_dim=hidden,
            decoder_kernel_size=3,
            decoder_stride=2,
            decoder_n_layers=2,
        )

    def forward(self, video):
        out = self.net(video)
        return out.decoded, out.codebook_output.codebook_indices


def get_inputs():
    return [torch.rand(1, 3, 8, 32, 32)]


def get_init_inputs():
    return [48, 128]
