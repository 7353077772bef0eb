"""transformers' BLIP: does a text fit an image, by a text encoder that attends to patches."""

import torch
from transformers import BlipConfig, BlipForImageTextRetrieval


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        text = {
            "vocab_size": 200,
            "hidden_size": 64,
            "encoder_hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
            "sep_token_id": 2,
        }
        vision = {
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 48,
        }
        self.net = BlipForImageTextRetrieval(
            BlipConfig(
                text_config=text, vision_config=vision, projection_dim=32, image_text_hidden_size=32
            )
        )

    def forward(self, tokens, mask, image):
        return self.net(input_ids=tokens, attention_mask=mask, pixel_values=image).itm_score


def get_inputs():
    return [
        torch.randint(3, 200, (2, 10)),
        torch.ones(2, 10, dtype=torch.long),
        torch.randn(2, 3, 48, 48),
    ]


def get_init_inputs():
    return []
