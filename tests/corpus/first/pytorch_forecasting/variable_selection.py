"""pytorch-forecasting's parts of a temporal fusion transformer: selection, gates, interpretable
attention."""

import torch
from pytorch_forecasting.models.temporal_fusion_transformer.sub_modules import (
    GateAddNorm,
    GatedResidualNetwork,
    InterpretableMultiHeadAttention,
    VariableSelectionNetwork,
)


class Model(torch.nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.select = VariableSelectionNetwork(
            {"price": 8, "shop": 4, "day": 1},
            width,
            input_embedding_flags={"shop": True},
            context_size=width,
        )
        self.attend = torch.nn.ModuleList(
            InterpretableMultiHeadAttention(4, width) for _ in range(blocks)
        )
        self.add = torch.nn.ModuleList(GateAddNorm(width) for _ in range(blocks))
        self.feed = torch.nn.ModuleList(
            GatedResidualNetwork(width, 2 * width, width) for _ in range(blocks)
        )

    def forward(self, price, shop, day, context):
        x, weights = self.select(
            {"price": price, "shop": shop, "day": day},
            context.unsqueeze(1).expand(-1, price.shape[1], -1),
        )
        mask = torch.ones(price.shape[1], price.shape[1], dtype=torch.bool).triu(1)
        for attend, add, feed in zip(self.attend, self.add, self.feed, strict=True):
            attended, _ = attend(x, x, x, mask=mask)
            x = feed(add(attended, x))
        return x, weights


def get_inputs():
    return [torch.randn(4, 20, 1), torch.randn(4, 20, 4), torch.randn(4, 20, 1), torch.randn(4, 32)]


def get_init_inputs():
    return [32, 2]
