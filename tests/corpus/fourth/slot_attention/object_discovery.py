"""Object discovery with slot attention: a convolutional encoder with positions, multi-head slots
that are kept or dropped by a learned gate, and a spatial broadcast decoder that mixes them."""

import torch
from slot_attention import AdaptiveSlotWrapper, MultiHeadSlotAttention
from torch import nn


class Model(nn.Module):
    def __init__(self, slots, dim):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, dim, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(dim, dim, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(dim, dim, 5, padding=2),
            nn.ReLU(),
        )
        self.place = nn.Linear(4, dim)
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.slots = AdaptiveSlotWrapper(
            MultiHeadSlotAttention(num_slots=slots, dim=dim, heads=4, iters=3)
        )
        self.spread = nn.Linear(4, dim)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(dim, dim, 5, stride=2, padding=2, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(dim, dim, 5, stride=2, padding=2, output_padding=1),
            nn.ReLU(),
            nn.Conv2d(dim, 4, 3, padding=1),
        )

    @staticmethod
    def grid(height, width):
        y, x = torch.meshgrid(
            torch.linspace(0, 1, height), torch.linspace(0, 1, width), indexing="ij"
        )
        return torch.stack([x, y, 1 - x, 1 - y], dim=-1)

    def forward(self, image):
        seen = self.encoder(image).permute(0, 2, 3, 1)
        seen = seen + self.place(self.grid(*seen.shape[1:3]))
        slots, keep = self.slots(self.mix(self.norm(seen.flatten(1, 2))))
        batch, number, dim = slots.shape
        canvas = slots.reshape(batch * number, 1, 1, dim).expand(-1, 8, 8, -1)
        canvas = (canvas + self.spread(self.grid(8, 8))).permute(0, 3, 1, 2)
        colour, mask = self.decoder(canvas).unflatten(0, (batch, number)).split([3, 1], dim=2)
        mask = mask.masked_fill(keep[:, :, None, None, None] < 0.5, -1e4).softmax(dim=1)
        return (colour * mask).sum(dim=1), mask, keep


def get_inputs():
    return [torch.rand(2, 3, 32, 32)]


def get_init_inputs():
    return [6, 64]
