"""Reward model of RLHF: PaLM with its own LoRA scope, learned embeddings for prompt and answer,
and the expected value of a binned reward for each sequence."""

import torch
from palm_rlhf_pytorch import PaLM, RewardModel


class Model(torch.nn.Module):
    def __init__(self, tokens, dim, depth, bins):
        super().__init__()
        palm = PaLM(num_tokens=tokens, dim=dim, depth=depth, causal=False)
        self.net = RewardModel(palm, num_binned_output=bins)

    def forward(self, ids, prompt_mask):
        return self.net(ids, prompt_mask=prompt_mask)


def get_inputs():
    prompt_mask = torch.zeros(2, 64).bool()
    prompt_mask[:, :24] = True
    return [torch.randint(0, 2000, (2, 64)), prompt_mask]


def get_init_inputs():
    return [2000, 256, 4, 5]
