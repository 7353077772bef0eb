"""RNA-FM: a BERT in the manner of ESM-1b for RNA, token dropout, with contacts regressed from all
attention maps; 6 of 12 layers."""

from argparse import Namespace

import torch
from fm.data import Alphabet
from fm.model.esm1 import BioBertModel


class Model(torch.nn.Module):
    def __init__(self, layers, dim, heads):
        super().__init__()
        alphabet = Alphabet.from_architecture("roberta_large", theme="rna")
        args = Namespace(
            arch="roberta_large",
            layers=layers,
            embed_dim=dim,
            ffn_embed_dim=dim * 4,
            attention_heads=heads,
            max_positions=1024,
            token_dropout=True,
            emb_layer_norm_before=True,
            final_bias=True,
        )
        self.net = BioBertModel(args, alphabet)
        self.layers = layers

    def forward(self, tokens):
        return self.net(tokens, repr_layers=[0, self.layers], return_contacts=True)


def get_inputs():
    tokens = torch.randint(4, 20, (2, 64))
    tokens[:, 0], tokens[:, -1] = 0, 2
    tokens[1, 50] = 2
    tokens[1, 51:] = 1
    tokens[0, 10] = 24
    return [tokens]


def get_init_inputs():
    return [6, 320, 20]
