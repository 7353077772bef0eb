"""Activation patching with TransformerLens: a hook puts one head's output of a clean run into a
corrupted run, layer by layer; the difference of two logits after each."""

import torch
from transformer_lens import HookedTransformer, HookedTransformerConfig


class Model(torch.nn.Module):
    def __init__(self, layers, dim, words):
        super().__init__()
        self.net = HookedTransformer(
            HookedTransformerConfig(
                n_layers=layers,
                d_model=dim,
                n_ctx=32,
                d_head=32,
                n_heads=dim // 32,
                d_vocab=words,
                act_fn="gelu_new",
                normalization_type="LN",
                use_attn_result=True,
                seed=5,
                device="cpu",
            )
        )

    def forward(self, clean, corrupted):
        _, cache = self.net.run_with_cache(clean)
        found = []
        for layer in range(self.net.cfg.n_layers):
            name = f"blocks.{layer}.attn.hook_z"

            def patch(value, hook):
                value = value.clone()
                value[:, :, 1] = cache[hook.name][:, :, 1]
                return value

            logits = self.net.run_with_hooks(corrupted, fwd_hooks=[(name, patch)])
            found.append(logits[:, -1, 7] - logits[:, -1, 11])
        return torch.stack(found, dim=1)


def get_inputs():
    return [torch.randint(0, 400, (2, 20)), torch.randint(0, 400, (2, 20))]


def get_init_inputs():
    return [3, 128, 400]
