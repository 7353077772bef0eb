"""lightly's masked autoencoder: the kept patches encoded, all of them decoded."""

import torch
from lightly.models.modules import MAEDecoderTIMM, MaskedVisionTransformerTorchvision
from torchvision.models import VisionTransformer


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        vit = VisionTransformer(
            image_size=32, patch_size=8, num_layers=2, num_heads=4, hidden_dim=48, mlp_dim=96
        )
        self.encoder = MaskedVisionTransformerTorchvision(vit)
        self.decoder = MAEDecoderTIMM(
            num_patches=16,
            patch_size=8,
            embed_dim=48,
            decoder_embed_dim=32,
            decoder_depth=2,
            decoder_num_heads=4,
        )

    def forward(self, image, kept):
        kept = torch.cat([torch.zeros_like(kept[:, :1]), kept], dim=1)
        tokens = self.decoder.embed(self.encoder.encode(image, idx_keep=kept))
        all_tokens = self.decoder.mask_token.repeat(2, 17, 1)
        places = kept[:, :, None].expand_as(tokens)
        all_tokens = all_tokens.scatter(1, places, tokens)
        return self.decoder.predict(self.decoder.decode(all_tokens))


def get_inputs():
    return [
        torch.randn(2, 3, 32, 32),
        torch.stack([torch.randperm(16)[:6].sort().values + 1 for _ in range(2)]),
    ]


def get_init_inputs():
    return []
