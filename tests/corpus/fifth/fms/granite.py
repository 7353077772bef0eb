"""Granite: a decoder with grouped queries and scaled embeddings, residuals and logits."""

import torch
from fms.models.granite import Granite, GraniteConfig


class Model(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        config = GraniteConfig(
            src_vocab_size=6000,
            emb_dim=384,
            nheads=6,
            head_dim=64,
            kvheads=2,
            nlayers=layers,
            max_expected_seq_len=256,
            embedding_multiplier=12.0,
            logits_scaling=8.0,
            residual_multiplier=0.22,
            attention_multiplier=0.015625,
        )
        self.net = Granite(config)
        self.net.reset_parameters()
        self.net.post_init()

    def forward(self, prompt, token):
        logits, cache = self.net(prompt, use_cache=True)
        positions = torch.full_like(token, prompt.shape[1])
        step, _ = self.net(
            token, position_ids=positions, past_key_value_states=cache, use_cache=True
        )
        return logits, step


def get_inputs():
    return [torch.randint(0, 6000, (2, 40)), torch.randint(0, 6000, (2, 1))]


def get_init_inputs():
    return [4]
