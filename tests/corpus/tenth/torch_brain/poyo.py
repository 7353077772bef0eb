"""POYO, which decodes behaviour from spikes through latents, from pytorch-brain."""

import torch
from torch import nn
from torch_brain.models.poyo import POYO


class Readout:
    dim = 2


class Model(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.model = POYO(
            sequence_length=1.0,
            readout_spec=Readout(),
            latent_step=0.125,
            num_latents_per_step=8,
            dim=dim,
            depth=depth,
            dim_head=32,
            cross_heads=2,
            self_heads=4,
        )
        self.model.unit_emb.initialize_vocab([f"unit{n}" for n in range(40)])
        self.model.session_emb.initialize_vocab(["session"])

    def forward(self, units, times, kinds, mask, latents, latent_times, sessions, out_times):
        return self.model(
            input_unit_index=units,
            input_timestamps=times,
            input_token_type=kinds,
            input_mask=mask,
            latent_index=latents,
            latent_timestamps=latent_times,
            output_session_index=sessions,
            output_timestamps=out_times,
        )


def get_inputs():
    mask = torch.ones(2, 120, dtype=torch.bool)
    mask[1, 100:] = False
    return [
        torch.randint(1, 40, (2, 120)),
        torch.rand(2, 120).sort().values,
        torch.randint(0, 4, (2, 120)),
        mask,
        torch.arange(8).repeat(2, 8),
        (torch.arange(64) // 8).repeat(2, 1) * 0.125,
        torch.ones(2, 30, dtype=torch.long),
        torch.linspace(0, 1, 30).repeat(2, 1),
    ]


def get_init_inputs():
    return [128, 2]
