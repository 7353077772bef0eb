"""normflows' Glow: the log probability of images over three scales."""

import normflows
import torch


class Model(torch.nn.Module):
    def __init__(self, levels, steps, hidden):
        super().__init__()
        bases, merges, flows = [], [], []
        for level in range(levels):
            channels = 3 * 2 ** (levels + 1 - level)
            flows.append(
                [
                    normflows.flows.GlowBlock(channels, hidden, init_zeros=False)
                    for _ in range(steps)
                ]
                + [normflows.flows.Squeeze()]
            )
            if level:
                merges.append(normflows.flows.Merge())
                shape = (
                    3 * 2 ** (levels - level),
                    16 // 2 ** (levels - level),
                    16 // 2 ** (levels - level),
                )
            else:
                shape = (channels, 16 // 2**levels, 16 // 2**levels)
            bases.append(normflows.distributions.DiagGaussian(shape))
        self.flow = normflows.MultiscaleFlow(bases, flows, merges, class_cond=False)
        for module in self.modules():
            if isinstance(module, normflows.flows.ActNorm):
                module.data_dep_init_done.fill_(1.0)

    def forward(self, images):
        return self.flow.log_prob(images, None)


def get_inputs():
    return [torch.randn(4, 3, 16, 16)]


def get_init_inputs():
    return [3, 2, 32]
