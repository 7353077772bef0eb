"""The parametric LIF network for gestures from an event camera: 6 frames of events."""

import torch
from spikingjelly.activation_based import functional, neuron
from spikingjelly.activation_based.model.parametric_lif_net import DVSGestureNet


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.net = DVSGestureNet(
            channels=channels,
            spiking_neuron=neuron.ParametricLIFNode,
            init_tau=2.0,
            detach_reset=True,
        )
        functional.set_step_mode(self.net, "m")
        for module in self.net.modules():  # without training, larger gains let spikes through
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                torch.nn.init.constant_(module.weight, 6.0)

    def forward(self, events):
        functional.reset_net(self.net)
        return self.net(events).mean(0)


def get_inputs():
    return [torch.randint(0, 2, (6, 1, 2, 128, 128)).float()]


def get_init_inputs():
    return [16]
