"""transformers' T5: relative position buckets, a padded source, a shifted target."""

import torch
from transformers import T5Config, T5ForConditionalGeneration


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = T5Config(
            vocab_size=300,
            d_model=width,
            d_kv=16,
            d_ff=2 * width,
            num_layers=layers,
            num_heads=4,
            feed_forward_proj="gated-gelu",
            decoder_start_token_id=0,
        )
        self.net = T5ForConditionalGeneration(config)

    def forward(self, source, mask, target):
        return self.net(
            input_ids=source, attention_mask=mask, decoder_input_ids=target, use_cache=False
        ).logits


def get_inputs():
    return [
        torch.randint(1, 300, (2, 24)),
        (torch.arange(24) < torch.tensor([[24], [17]])).long(),
        torch.randint(1, 300, (2, 10)),
    ]


def get_init_inputs():
    return [64, 2]
