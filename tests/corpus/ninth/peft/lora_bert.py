"""BERT with LoRA of its attention, by peft, and with a new head for classes."""

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch import nn
from transformers import BertConfig, BertForSequenceClassification


class Model(nn.Module):
    def __init__(self, rank, classes):
        super().__init__()
        config = BertConfig(
            vocab_size=2000,
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
            num_labels=classes,
        )
        lora = LoraConfig(
            task_type=TaskType.SEQ_CLS,
            r=rank,
            lora_alpha=16,
            lora_dropout=0.1,
            target_modules=["query", "value"],
            init_lora_weights=False,
        )
        self.model = get_peft_model(BertForSequenceClassification(config), lora)

    def forward(self, ids, mask):
        return self.model(input_ids=ids, attention_mask=mask).logits


def get_inputs():
    mask = torch.ones(2, 48, dtype=torch.long)
    mask[1, 30:] = 0
    return [torch.randint(0, 2000, (2, 48)), mask]


def get_init_inputs():
    return [8, 4]
