"""Temporal point process with a neural ODE between the events, RK4 inside an autograd function;
intensities at sampled times."""

import torch
from easy_tpp.config_factory import ModelConfig
from easy_tpp.model import TorchODETPP as ODETPP


class Model(torch.nn.Module):
    def __init__(self, types, hidden, steps):
        super().__init__()
        self.net = ODETPP(
            ModelConfig(
                model_id="ODETPP",
                hidden_size=hidden,
                num_event_types=types,
                num_event_types_pad=types + 1,
                event_pad_index=types,
                loss_integral_num_sample_per_step=8,
                model_specs={"ode_num_sample_per_step": steps},
            )
        )

    def forward(self, deltas, types, mask):
        loss, events = self.net.loglike_loss(
            time_seqs=deltas.cumsum(dim=1),
            time_delta_seqs=deltas,
            type_seqs=types,
            seq_non_pad_mask=mask,
        )
        return loss, loss / events


def get_inputs():
    types = torch.randint(0, 12, (8, 12))
    mask = torch.ones(8, 12, dtype=torch.bool)
    mask[3, 8:] = False
    types[3, 8:] = 12
    deltas = torch.rand(8, 12) * mask
    deltas[:, 0] = 0
    return [deltas, types, mask]


def get_init_inputs():
    return [12, 32, 4]
