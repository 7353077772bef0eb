"""Boltz: the trunk of a structure predictor; an MSA module and a Pairformer."""

import torch
from boltz.model.modules.trunk import MSAModule, PairformerModule


class Model(torch.nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.msa = MSAModule(
            msa_s=32,
            token_z=64,
            s_input_dim=96,
            msa_blocks=2,
            msa_dropout=0.15,
            z_dropout=0.25,
            pairwise_head_width=16,
            pairwise_num_heads=4,
            use_paired_feature=True,
        )
        self.pairformer = PairformerModule(
            token_s=128,
            token_z=64,
            num_blocks=blocks,
            num_heads=8,
            dropout=0.25,
            pairwise_head_width=16,
            pairwise_num_heads=4,
        )

    def forward(self, single, pair, inputs, msa, mask):
        features = {
            "msa": msa,
            "has_deletion": torch.zeros_like(msa[..., 0]),
            "deletion_value": torch.zeros_like(msa[..., 0]),
            "msa_paired": torch.ones_like(msa[..., 0]),
            "msa_mask": mask[:, None].expand(msa.shape[:-1]),
            "token_pad_mask": mask,
        }
        pair = pair + self.msa(pair, inputs, features)
        return self.pairformer(single, pair, mask, mask[:, :, None] * mask[:, None, :])


def get_inputs():
    from torch.nn.functional import one_hot

    tokens = 24
    msa = one_hot(torch.randint(0, 33, (1, 12, tokens)), 33).float()
    mask = (torch.arange(tokens) < 22).float()[None]
    return [
        torch.randn(1, tokens, 128),
        torch.randn(1, tokens, tokens, 64),
        torch.randn(1, tokens, 96),
        msa,
        mask,
    ]


def get_init_inputs():
    return [3]
