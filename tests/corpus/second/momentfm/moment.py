"""MOMENT: each channel's patches in a T5 encoder after reversible instance norm; reconstruction
of a masked series."""

import torch
from momentfm.models.moment import MOMENT


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        config = {
            "task_name": "reconstruction",
            "transformer_backbone": "google/flan-t5-small",
            "transformer_type": "encoder_only",
            "t5_config": {
                "d_model": dim,
                "d_kv": 16,
                "d_ff": 2 * dim,
                "num_layers": layers,
                "num_heads": 4,
                "vocab_size": 32,
                "feed_forward_proj": "gated-gelu",
            },
            "d_model": None,
            "seq_len": 128,
            "patch_len": 8,
            "patch_stride_len": 8,
            "randomly_initialize_backbone": True,
            "enable_gradient_checkpointing": False,
        }
        self.net = MOMENT(config, model_kwargs={})

    def forward(self, series, observed, mask):
        return self.net(x_enc=series, input_mask=observed, mask=mask).reconstruction


def get_inputs():
    return [torch.randn(2, 3, 128), torch.ones(2, 128), torch.ones(2, 128)]


def get_init_inputs():
    return [64, 3]
