"""Neural Hawkes process: a continuous-time LSTM whose cells decay between the events; the
log-likelihood's integral is sampled with uniform noise."""

import torch
from easy_tpp.config_factory import ModelConfig
from easy_tpp.model import TorchNHP as NHP


class Model(torch.nn.Module):
    def __init__(self, types, hidden, samples):
        super().__init__()
        self.net = NHP(
            ModelConfig(
                model_id="NHP",
                hidden_size=hidden,
                num_event_types=types,
                num_event_types_pad=types + 1,
                event_pad_index=types,
                loss_integral_num_sample_per_step=samples,
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
    types = torch.randint(0, 12, (8, 24))
    mask = torch.ones(8, 24, dtype=torch.bool)
    mask[3, 18:] = False
    types[3, 18:] = 12
    deltas = torch.rand(8, 24) * mask
    deltas[:, 0] = 0
    return [deltas, types, mask]


def get_init_inputs():
    return [12, 64, 10]
