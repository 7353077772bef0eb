"""open_clip's CLIP with scaled residuals: both embeddings and their scale."""

import torch
from open_clip import CLIP, CLIPTextCfg, CLIPVisionCfg


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = CLIP(
            embed_dim=32,
            vision_cfg=CLIPVisionCfg(
                layers=2, width=64, head_width=16, patch_size=16, image_size=64, ls_init_value=0.1
            ),
            text_cfg=CLIPTextCfg(context_length=12, vocab_size=200, width=64, heads=4, layers=2),
            quick_gelu=True,
        )

    def forward(self, image, tokens):
        return self.net(image, tokens)


def get_inputs():
    return [torch.randn(2, 3, 64, 64), torch.randint(1, 200, (2, 12))]


def get_init_inputs():
    return []
