"""Performer encoder and decoder: kernel attention of both kinds and cross attention, generalized
ReLU features in the encoder; the loss of a masked translation batch."""

import torch
from performer_pytorch import PerformerEncDec


class Model(torch.nn.Module):
    def __init__(self, dim, tokens, length):
        super().__init__()
        self.net = PerformerEncDec(
            dim=dim,
            tie_token_embeds=True,
            enc_num_tokens=tokens,
            enc_depth=3,
            enc_heads=8,
            enc_max_seq_len=length,
            enc_generalized_attention=True,
            enc_auto_check_redraw=False,
            dec_num_tokens=tokens,
            dec_depth=3,
            dec_heads=8,
            dec_max_seq_len=length,
            dec_auto_check_redraw=False,
        )

    def forward(self, source, target, source_mask, target_mask):
        return self.net(
            source, target, return_loss=True, enc_mask=source_mask, dec_mask=target_mask
        )


def get_inputs():
    source_mask = torch.ones(2, 128).bool()
    source_mask[1, 100:] = False
    target_mask = torch.ones(2, 96).bool()
    target_mask[0, 80:] = False
    return [
        torch.randint(1, 1000, (2, 128)),
        torch.randint(1, 1000, (2, 96)),
        source_mask,
        target_mask,
    ]


def get_init_inputs():
    return [256, 1000, 128]
