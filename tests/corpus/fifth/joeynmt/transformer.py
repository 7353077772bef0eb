"""JoeyNMT: a translation transformer with pre-norm; the encoder and one pass of the decoder."""

from types import SimpleNamespace

import torch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary


class Model(torch.nn.Module):
    def __init__(self, layers):
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
        side = {"type": "transformer", "num_layers": layers, "num_heads": 8, "hidden_size": 256}
        side |= {"ff_size": 1024, "layer_norm": "pre", "dropout": 0.1}
        side |= {"embeddings": {"embedding_dim": 256, "scale": True}}
        config = {"encoder": dict(side), "decoder": dict(side), "tied_softmax": True}
        self.net = build_model(config, src_vocab=words, trg_vocab=words)

    def forward(self, source, target):
        mask = (source != 1).unsqueeze(1)
        length = (source != 1).sum(1)
        logits, states, *_ = self.net(
            return_type="decode",
            trg_input=target,
            encoder_output=self.net._encode(source, length, mask)[0],
            encoder_hidden=None,
            src_mask=mask,
            unroll_steps=None,
            decoder_hidden=None,
            trg_mask=(target != 1).unsqueeze(1),
        )
        return logits, states


def get_inputs():
    source = torch.randint(4, 2000, (3, 20))
    source[1, 15:] = 1
    return [source, torch.randint(4, 2000, (3, 12))]


def get_init_inputs():
    return [3]
