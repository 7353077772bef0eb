"""A Llama-3-like model that reads a prompt into its key-value cache and then decodes one token."""

import torch
from litgpt import GPT, Config


class Model(torch.nn.Module):
    def __init__(self, layers, dim):
        super().__init__()
        config = Config.from_name(
            "Llama-3.2-1B",
            n_layer=layers,
            n_embd=dim,
            n_head=4,
            n_query_groups=2,
            head_size=32,
            intermediate_size=2 * dim,
            block_size=64,
            padded_vocab_size=1000,
        )
        self.net = GPT(config)
        self.net.set_kv_cache(batch_size=1)

    def forward(self, prompt, token):
        length = prompt.shape[1]
        self.net(prompt, torch.arange(length))
        return self.net(token, torch.tensor([length]))


def get_inputs():
    return [torch.randint(0, 1000, (1, 24)), torch.randint(0, 1000, (1, 1))]


def get_init_inputs():
    return [2, 128]
