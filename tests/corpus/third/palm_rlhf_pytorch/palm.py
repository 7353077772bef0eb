"""PaLM: parallel attention and feed-forward from one projection, one key and value head for all
queries, rotary positions with xPos, SwiGLU and a LoRA scope that is switched on."""

import torch
from palm_rlhf_pytorch import PaLM


class Model(torch.nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.net = PaLM(
            num_tokens=tokens, dim=dim, depth=depth, heads=8, dim_head=64, qk_rmsnorm=True
        )
        self.net.add_finetune_params("actor", lora_r=8)

    def forward(self, ids):
        return self.net(ids, finetune_scope="actor")


def get_inputs():
    return [torch.randint(0, 2000, (2, 96))]


def get_init_inputs():
    return [2000, 384, 6]
