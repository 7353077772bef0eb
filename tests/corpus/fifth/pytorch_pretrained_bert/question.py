"""BERT of 2018 with a head for the span of an answer."""

import torch
from pytorch_pretrained_bert import BertConfig, BertForQuestionAnswering


class Model(torch.nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.net = BertForQuestionAnswering(
            BertConfig(
                5000,
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=8,
                intermediate_size=4 * width,
            )
        )

    def forward(self, tokens, kinds, mask):
        return self.net(tokens, kinds, mask)


def get_inputs():
    mask = (torch.arange(64)[None] < torch.tensor([64, 50])[:, None]).long()
    return [torch.randint(0, 5000, (2, 64)), (torch.arange(64) > 20).long().expand(2, -1), mask]


def get_init_inputs():
    return [256, 4]
