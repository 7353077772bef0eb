"""AlphaGenome, small: convolutional U-Net around a transformer with pair representation."""

import torch
from alphagenome_pytorch.alphagenome import AlphaGenome, ContactMapHead, TracksScaledPrediction
from torch import nn


class Model(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.model = AlphaGenome(
            dims=dims,
            transformer_kwargs={
                "depth": 2,
                "heads": 4,
                "dim_head_qk": 32,
                "dim_head_v": 48,
                "dim_pairwise": 32,
                "single_to_pairwise_heads": 8,
                "max_positions": 512,
            },
        )
        self.model.add_head(
            "human", "1bp_tracks", TracksScaledPrediction(self.model.dim_1bp, 8), ("embeds_1bp",)
        )
        self.model.add_head(
            "human",
            "128bp_tracks",
            TracksScaledPrediction(self.model.dim_128bp, 8),
            ("embeds_128bp",),
        )
        self.model.add_head("human", "contact_head", ContactMapHead(self.model.dim_contacts, 4, 2))

        for module in self.model.modules():
            if hasattr(module, "update_running_var"):
                module.update_running_var = False

    def forward(self, seq, organism):
        return self.model(seq, organism)


def get_inputs():
    return [torch.randint(0, 4, (1, 512)), torch.zeros(1, dtype=torch.long)]


def get_init_inputs():
    return [(64, 96, 128)]
