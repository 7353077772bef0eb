"""MUSE: the VQGAN autoencoder with lookup-free quantisation."""

import torch
from muse_maskgit_pytorch.vqgan_vae import VQGanVAE
from torch import nn


class Model(nn.Module):
    def __init__(self, dim, codes):
        super().__init__()
        self.model = VQGanVAE(dim=dim, layers=3, codebook_size=codes, use_vgg_and_gan=False)

    def forward(self, img):
        fmap, indices, _ = self.model.encode(img)
        return self.model.decode(fmap), indices


def get_inputs():
    return [torch.rand(1, 3, 64, 64)]


def get_init_inputs():
    return [32, 1024]
