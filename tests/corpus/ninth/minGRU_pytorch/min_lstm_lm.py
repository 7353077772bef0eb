"""Language model of minLSTM with convolutions, run on a prompt and then on one more token."""

import torch
from minGRU_pytorch.minLM import minLM
from torch import nn


class Model(nn.Module):
    def __init__(self, tokens, dim, depth):
        super().__init__()
        self.model = minLM(num_tokens=tokens, dim=dim, depth=depth)

    def forward(self, prompt):
        logits, hiddens = self.model(prompt, return_prev_hiddens=True)
        token = logits[:, -1].argmax(-1, keepdim=True)
        sequence = torch.cat([prompt, token], 1)
        after, _ = self.model(sequence, return_prev_hiddens=True, prev_hiddens=hiddens)
        return logits, after


def get_inputs():
    return [torch.randint(0, 256, (2, 128))]


def get_init_inputs():
    return [256, 256, 4]
