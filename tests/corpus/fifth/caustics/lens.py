"""A lens simulator: a Sersic galaxy seen through an elliptical mass with external shear."""

import caustics
import torch


class Model(torch.nn.Module):
    def __init__(self, pixels):
        super().__init__()
        cosmology = caustics.FlatLambdaCDM(name="cosmology")
        mass = caustics.SIE(cosmology, name="mass", z_l=0.5, z_s=1.0)
        shear = caustics.ExternalShear(
            cosmology, name="shear", z_l=0.5, z_s=1.0, x0=0.0, y0=0.0, gamma_1=0.05, gamma_2=-0.02
        )
        lens = caustics.SinglePlane(cosmology, [mass, shear], name="plane", z_l=0.5, z_s=1.0)
        source = caustics.Sersic(
            name="source", x0=0.1, y0=0.05, q=0.7, phi=0.6, n=1.5, Re=0.4, Ie=2.0
        )
        light = caustics.Sersic(name="light", x0=0.0, y0=0.0, q=0.8, phi=0.3, n=4.0, Re=0.9, Ie=1.0)
        self.net = caustics.LensSource(
            lens=lens,
            source=source,
            lens_light=light,
            pixelscale=0.05,
            pixels_x=pixels,
            upsample_factor=2,
        )

    def forward(self, masses):
        return torch.stack([self.net(values) for values in masses])


def get_inputs():
    middle = torch.tensor([0.0, 0.0, 0.7, 0.8, 1.2])
    return [middle + 0.1 * torch.rand(3, 5)]


def get_init_inputs():
    return [64]
