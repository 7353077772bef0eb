"""Transformer Hawkes process: time encodings added at each layer, causal attention with padding;
the log-likelihood's integral is sampled with uniform noise."""

import torch
from easy_tpp.config_factory import ModelConfig
from easy_tpp.model import TorchTHP as THP


class Model(torch.nn.Module):
    def __init__(self, types, hidden, layers, heads):
        super().__init__()
        self.net = THP(
            ModelConfig(
                model_id="THP",
                hidden_size=hidden,
                num_layers=layers,
                num_heads=heads,
                num_event_types=types,
                num_event_types_pad=types + 1,
                event_pad_index=types,
                loss_integral_num_sample_per_step=20,
            )
        )

    def forward(self, deltas, types, mask):
        length = types.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        loss, events = self.net.loglike_loss(
            time_seqs=deltas.cumsum(dim=1),
            time_delta_seqs=deltas,
            type_seqs=types,
            seq_non_pad_mask=mask,
            attention_mask=future | ~mask[:, None, :],
        )
        return loss, loss / events


def get_inputs():
    types = torch.randint(0, 12, (8, 40))
    mask = torch.ones(8, 40, dtype=torch.bool)
    mask[3, 30:] = False
    types[3, 30:] = 12
    deltas = torch.rand(8, 40) * mask
    deltas[:, 0] = 0
    return [deltas, types, mask]


def get_init_inputs():
    return [12, 64, 4, 4]
