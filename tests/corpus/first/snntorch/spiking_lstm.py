"""snntorch's spiking LSTM of convolutions and a synaptic layer, over a short film."""

import snntorch
import torch


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = snntorch.SConv2dLSTM(1, channels, 3, max_pool=2)
        self.second = snntorch.SConv2dLSTM(channels, channels, 3, max_pool=2)
        self.fc = torch.nn.Linear(channels * 49, 10)
        self.out = snntorch.Synaptic(alpha=0.8, beta=0.9)

    def forward(self, film):
        cells1, potential1 = self.first.init_sconv2dlstm()
        cells2, potential2 = self.second.init_sconv2dlstm()
        current, potential = self.out.init_synaptic()
        spikes = []
        for frame in film.unbind(1):
            x, cells1, potential1 = self.first(frame, cells1, potential1)
            x, cells2, potential2 = self.second(x, cells2, potential2)
            x, current, potential = self.out(self.fc(x.flatten(1)), current, potential)
            spikes.append(x)
        return torch.stack(spikes), potential


def get_inputs():
    return [torch.rand(2, 4, 1, 28, 28)]


def get_init_inputs():
    return [8]
