"""SAINT of widedeep: attention between columns and between rows, with a wide linear part."""

import torch
from pytorch_widedeep.models import SAINT, Wide, WideDeep


class Model(torch.nn.Module):
    def __init__(self, blocks, width):
        super().__init__()
        names = [f"c{i}" for i in range(5)] + [f"x{i}" for i in range(7)]
        tabular = SAINT(
            {name: i for i, name in enumerate(names)},
            cat_embed_input=[(name, 12) for name in names[:5]],
            continuous_cols=names[5:],
            input_dim=width,
            n_heads=4,
            n_blocks=blocks,
        )
        self.net = WideDeep(wide=Wide(60, 3), deeptabular=tabular, pred_dim=3)

    def forward(self, wide, table):
        return self.net({"wide": wide, "deeptabular": table})


def get_inputs():
    table = torch.cat([torch.randint(1, 13, (32, 5)).float(), torch.randn(32, 7)], 1)
    return [torch.randint(1, 60, (32, 5)), table]


def get_init_inputs():
    return [3, 32]
