"""open_clip's CoCa: contrastive towers and a decoder of captions."""

import torch
from open_clip import CLIPTextCfg, CLIPVisionCfg, CoCa
from open_clip.coca_model import MultimodalCfg


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = CoCa(
            embed_dim=64,
            multimodal_cfg=MultimodalCfg(width=64, context_length=12, heads=4, layers=2),
            text_cfg=CLIPTextCfg(
                context_length=12,
                vocab_size=200,
                width=64,
                heads=4,
                layers=2,
                embed_cls=True,
                output_tokens=True,
            ),
            vision_cfg=CLIPVisionCfg(
                layers=2,
                width=64,
                head_width=16,
                patch_size=16,
                image_size=64,
                attentional_pool=True,
                attn_pooler_heads=4,
                output_tokens=True,
            ),
        )

    def forward(self, image, tokens):
        return self.net(image, tokens)


def get_inputs():
    return [torch.randn(2, 3, 64, 64), torch.randint(1, 200, (2, 12))]


def get_init_inputs():
    return []
