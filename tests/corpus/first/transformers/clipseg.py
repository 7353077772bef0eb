"""transformers' CLIPSeg: an image's segments by a text, from CLIP's layers."""

import torch
from transformers import CLIPSegConfig, CLIPSegForImageSegmentation


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        text = {
            "vocab_size": 200,
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "eos_token_id": 199,
        }
        vision = {
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "image_size": 64,
            "patch_size": 16,
        }
        self.net = CLIPSegForImageSegmentation(
            CLIPSegConfig(
                text_config=text,
                vision_config=vision,
                projection_dim=48,
                extract_layers=[1, 2, 3],
                reduce_dim=32,
                decoder_intermediate_size=64,
                decoder_num_attention_heads=4,
                conditional_layer=0,
            )
        )

    def forward(self, tokens, image):
        return self.net(input_ids=tokens, pixel_values=image).logits


def get_inputs():
    return [torch.randint(3, 199, (2, 8)), torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return []
