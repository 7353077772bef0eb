"""mambapy's Jamba: layers of Mamba and of attention, every other one with a mixture of experts."""

import torch
from mambapy.jamba import Jamba, JambaLMConfig


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        config = JambaLMConfig(
            d_model=width,
            n_layers=layers,
            mlp_size=2 * width,
            num_attention_heads=4,
            num_key_value_heads=2,
            num_experts=4,
            num_experts_per_tok=2,
            attn_layer_offset=1,
            attn_layer_period=4,
            expert_layer_offset=1,
            expert_layer_period=2,
        )
        self.embed = torch.nn.Embedding(256, width)
        self.net = Jamba(config)

    def forward(self, tokens):
        return self.net(self.embed(tokens))


def get_inputs():
    return [torch.randint(0, 256, (1, 32))]


def get_init_inputs():
    return [64, 4]
