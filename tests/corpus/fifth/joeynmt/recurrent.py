"""JoeyNMT: a two-way GRU encoder and a GRU decoder with Bahdanau attention and input feeding."""

from types import SimpleNamespace

import torch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        special = {
            "unk_token": "<unk>",
            "pad_token": "<pad>",
            "bos_token": "<s>",
            "eos_token": "</s>",
        }
        special |= {"sep_token": None, "unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3}
        special |= {"lang_tags": []}
        words = Vocabulary([f"w{i}" for i in range(2000)], SimpleNamespace(**special))
        encoder = {"type": "recurrent", "rnn_type": "gru", "num_layers": 2, "hidden_size": 128}
        encoder |= {"bidirectional": True, "embeddings": {"embedding_dim": 128}}
        decoder = {"type": "recurrent", "rnn_type": "gru", "num_layers": 2, "hidden_size": width}
        decoder |= {"embeddings": {"embedding_dim": 128}, "attention": "bahdanau"}
        decoder |= {"input_feeding": True, "init_hidden": "bridge"}
        self.net = build_model(
            {"encoder": encoder, "decoder": decoder}, src_vocab=words, trg_vocab=words
        )

    def forward(self, source, target):
        mask = (source != 1).unsqueeze(1)
        length = (source != 1).sum(1)
        encoded, hidden, *_ = self.net._encode(source, length, mask)
        logits, _, attention, vectors = self.net(
            return_type="decode",
            trg_input=target,
            encoder_output=encoded,
            encoder_hidden=hidden,
            src_mask=mask,
            unroll_steps=target.shape[1],
            decoder_hidden=None,
            trg_mask=(target != 1).unsqueeze(1),
        )
        return logits, attention, vectors


def get_inputs():
    source = torch.randint(4, 2000, (3, 16))
    source[1, 12:] = 1
    source[2, 9:] = 1
    return [source, torch.randint(4, 2000, (3, 8))]


def get_init_inputs():
    return [256]
