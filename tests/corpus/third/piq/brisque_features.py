"""Statistics of natural scenes: the features of BRISQUE (generalized Gaussians fitted to
normalized luminance), with SSIM, VIF and SR-SIM beside them."""

import torch
from piq import srsim, ssim, vif_p
from piq.brisque import _natural_scene_statistics


class Model(torch.nn.Module):
    def __init__(self, kernel, sigma):
        super().__init__()
        self.kernel = kernel
        self.sigma = sigma

    def forward(self, picture, reference):
        features = [
            _natural_scene_statistics(x, self.kernel, self.sigma)
            for x in (picture.mean(1, keepdim=True), reference.mean(1, keepdim=True))
        ]
        return {
            "features": torch.cat(features, dim=-1),
            "ssim": ssim(picture, reference, reduction="none"),
            "vif": vif_p(picture, reference, reduction="none"),
            "srsim": srsim(picture, reference, reduction="none"),
        }


def get_inputs():
    reference = torch.rand(2, 3, 192, 192)
    return [(reference + 0.05 * torch.randn(2, 3, 192, 192)).clamp(0, 1), reference]


def get_init_inputs():
    return [7, 7 / 6]
