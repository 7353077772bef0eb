"""A rotary, gated language model of TransformerLens: besides its logits, what every layer's
residual stream would predict, taken from the cache of activations."""

import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig


class Model(torch.nn.Module):
    def __init__(self, layers, dim, words):
        super().__init__()
        self.net = HookedTransformer(
            HookedTransformerConfig(
                n_layers=layers,
                d_model=dim,
                n_ctx=128,
                d_head=dim // 8,
                n_heads=8,
                n_key_value_heads=2,
                d_mlp=dim * 2,
                d_vocab=words,
                act_fn="silu",
                gated_mlp=True,
                normalization_type="RMS",
                positional_embedding_type="rotary",
                rotary_dim=dim // 8,
                seed=3,
                device="cpu",
            )
        )

    def forward(self, tokens):
        logits, cache = self.net.run_with_cache(tokens, return_type="logits")
        lens = [
            self.net.unembed(self.net.ln_final(cache["resid_post", layer]))
            for layer in range(self.net.cfg.n_layers - 1)
        ]
        return logits, torch.stack(lens).log_softmax(dim=-1)


def get_inputs():
    return [torch.randint(0, 1000, (2, 48))]


def get_init_inputs():
    return [4, 256, 1000]
