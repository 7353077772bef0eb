"""Widedeep's attentive LSTM on text and a table's periodic FT-Transformer, one head on both."""

import torch
from pytorch_widedeep.models import AttentiveRNN, FTTransformer, WideDeep


class Model(torch.nn.Module):
    def __init__(self, words, blocks):
        super().__init__()
        names = ["kind", "city", *(f"x{i}" for i in range(6))]
        tabular = FTTransformer(
            {name: i for i, name in enumerate(names)},
            cat_embed_input=[("kind", 8), ("city", 30)],
            continuous_cols=names[2:],
            embed_continuous_method="periodic",
            n_frequencies=16,
            sigma=0.1,
            share_last_layer=False,
            input_dim=64,
            n_blocks=blocks,
            n_heads=4,
        )
        text = AttentiveRNN(words, embed_dim=64, hidden_dim=64, n_layers=2, bidirectional=True)
        self.net = WideDeep(
            deeptabular=tabular, deeptext=text, head_hidden_dims=[128, 64], pred_dim=1
        )

    def forward(self, table, text):
        return self.net({"deeptabular": table, "deeptext": text})


def get_inputs():
    kinds = [torch.randint(1, 9, (16, 1)).float(), torch.randint(1, 31, (16, 1)).float()]
    return [torch.cat([*kinds, torch.randn(16, 6)], 1), torch.randint(1, 1000, (16, 40))]


def get_init_inputs():
    return [1000, 3]
