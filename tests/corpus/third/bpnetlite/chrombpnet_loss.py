"""ChromBPNet: a bias model and an accessibility model joined in log space, with their loss.

The loss is the one that it trains with: multinomial log-likelihood of the profile (log-gamma
terms) plus the squared error of the log counts.
"""

import torch
from bpnetlite.bpnet import BPNet
from bpnetlite.chrombpnet import ChromBPNet
from bpnetlite.losses import MNLLLoss, log1pMSELoss


class Model(torch.nn.Module):
    def __init__(self, bias_filters, filters):
        super().__init__()
        bias = BPNet(n_filters=bias_filters, n_layers=4, n_outputs=1, n_control_tracks=0)
        trunk = BPNet(n_filters=filters, n_layers=8, n_outputs=1, n_control_tracks=0)
        # The two must give profiles of one length.
        bias.trimming = trunk.trimming
        self.net = ChromBPNet(bias, trunk)

    def forward(self, sequence, reads):
        profile, counts = self.net(sequence)
        flat = profile.flatten(1).log_softmax(-1)
        return (
            MNLLLoss(flat, reads.flatten(1)),
            log1pMSELoss(counts, reads.sum(dim=(1, 2))[:, None]),
            counts,
        )


def get_inputs():
    bases = torch.randint(0, 4, (2, 2114))
    sequence = torch.nn.functional.one_hot(bases, 4).float().transpose(1, 2)
    return [sequence, torch.randint(0, 6, (2, 1, 1000)).float()]


def get_init_inputs():
    return [64, 128]
