"""FLAVA of TorchMultimodal: a picture's transformer with masked patches, a text's, and a third over
both; the projections that are compared."""

import torch
from torchmultimodal.models.flava.model import flava_model


class Model(torch.nn.Module):
    def __init__(self, dim, layers):
        super().__init__()
        side = {"hidden_size": dim, "num_attention_heads": 6, "num_hidden_layers": layers}
        side["intermediate_size"] = dim * 4
        sizes = {
            f"{part}_{key}": value
            for part in ("image", "text", "multimodal")
            for key, value in side.items()
        }
        self.net = flava_model(
            **sizes, image_size=96, patch_size=16, vocab_size=3000, text_and_image_proj_size=dim
        )

    def forward(self, image, text, masked):
        out = self.net(image=image, text=text, text_masked=text, image_patches_mask=masked)
        return (
            out.image.last_hidden_state,
            out.text.last_hidden_state,
            out.multimodal_masked.last_hidden_state,
            out.projected_image_embeddings,
            out.projected_text_embeddings,
        )


def get_inputs():
    text = torch.randint(1, 3000, (2, 24))
    text[1, 15:] = 0
    return [torch.rand(2, 3, 96, 96), text, torch.rand(2, 36) < 0.4]


def get_init_inputs():
    return [192, 3]
