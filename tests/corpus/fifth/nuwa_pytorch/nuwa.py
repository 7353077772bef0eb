"""NUWA: text encoder and sparse 3-D nearby attention over a video's VQ-GAN codes, to logits."""

import torch
from nuwa_pytorch import NUWA, VQGanVAE


class Model(torch.nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        vae = VQGanVAE(
            dim=32, image_size=64, num_layers=3, vq_kmeans_init=False, use_vgg_and_gan=False
        )
        self.net = NUWA(
            vae=vae,
            dim=dim,
            max_video_frames=4,
            text_num_tokens=4000,
            text_max_seq_len=32,
            text_enc_depth=depth,
            dec_depth=depth,
            enc_reversible=True,
            dec_reversible=True,
            sparse_3dna_kernel_size=(3, 3, 3),
            sparse_3dna_dilation=(1, 2),
            shift_video_tokens=True,
        )

    def forward(self, text, video):
        codes = self.net.vae.get_video_indices(video).flatten(1)
        return self.net(text=text, video=codes[:, :-1], cond_dropout_prob=0.0)


def get_inputs():
    return [torch.randint(1, 4000, (1, 32)), torch.rand(1, 4, 3, 64, 64)]


def get_init_inputs():
    return [256, 4]
