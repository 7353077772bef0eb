"""Feature crosses for the rate of clicks: gated fields, bilinear pairs, CIN and deep crosses."""

import torch
from fuxictr.pytorch.layers import (
    BilinearInteractionV2,
    CompressedInteractionNet,
    CrossNetMix,
    CrossNetV2,
    MLP_Block,
    SqueezeExcitation,
)


class Model(torch.nn.Module):
    def __init__(self, fields, width):
        super().__init__()
        self.embed = torch.nn.Embedding(fields * 100, width)
        self.register_buffer("offsets", 100 * torch.arange(fields))
        self.gate = SqueezeExcitation(fields, reduction_ratio=3)
        self.pairs = BilinearInteractionV2(fields, width, bilinear_type="field_interaction")
        self.cin = CompressedInteractionNet(fields, [32, 16], output_dim=8)
        self.cross = CrossNetV2(fields * width, 3)
        self.mixed = CrossNetMix(fields * width, layer_num=2, low_rank=16, num_experts=4)
        inputs = fields * (fields - 1) // 2 * width + 8 + 2 * fields * width
        self.deep = MLP_Block(inputs, hidden_units=[256, 128], output_dim=1, batch_norm=True)

    def forward(self, ids):
        x = self.embed(ids + self.offsets)
        gated = self.gate(x)
        pairs = self.pairs(gated).flatten(1)
        flat = x.flatten(1)
        parts = [pairs, self.cin(x), self.cross(flat), self.mixed(flat)]
        return torch.sigmoid(self.deep(torch.cat(parts, dim=1)))


def get_inputs():
    return [torch.randint(0, 100, (64, 12))]


def get_init_inputs():
    return [12, 16]
