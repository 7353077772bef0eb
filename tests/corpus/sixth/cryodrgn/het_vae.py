"""cryoDRGN: a particle's image in Fourier space becomes a latent of its conformation, and a network
over positions gives the slice of the volume at the particle's pose."""

import torch
from cryodrgn.lattice import Lattice
from cryodrgn.models import HetOnlyVAE


class Model(torch.nn.Module):
    def __init__(self, size, latents):
        super().__init__()
        self.lattice = Lattice(size, extent=0.5)
        self.mask = self.lattice.get_circular_mask(size // 2)
        self.size = size
        self.net = HetOnlyVAE(
            self.lattice,
            qlayers=3,
            qdim=128,
            players=3,
            pdim=128,
            in_dim=size**2,
            zdim=latents,
            encode_mode="resid",
            enc_type="gaussian",
            enc_dim=32,
            domain="fourier",
            feat_sigma=0.5,
        )

    def forward(self, image, rotation):
        mean, logvar = self.net.encode(image)
        places = self.lattice.coords[self.mask] @ rotation
        slices = torch.zeros(len(image), self.size**2)
        slices[:, self.mask] = self.net(places, mean)
        return slices.unflatten(1, (self.size, self.size)), mean, logvar


def get_inputs():
    return [torch.randn(4, 33, 33), torch.linalg.qr(torch.randn(4, 3, 3)).Q]


def get_init_inputs():
    return [33, 8]
