"""segment-anything's prompts and mask decoder: points and a box, three masks."""

import torch
from segment_anything.modeling import MaskDecoder, PromptEncoder, TwoWayTransformer


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = PromptEncoder(
            embed_dim=32, image_embedding_size=(8, 8), input_image_size=(64, 64), mask_in_chans=8
        )
        self.decoder = MaskDecoder(
            transformer_dim=32,
            transformer=TwoWayTransformer(depth=2, embedding_dim=32, num_heads=4, mlp_dim=64),
            iou_head_hidden_dim=32,
        )

    def forward(self, image, points, labels, boxes):
        sparse, dense = self.prompt(points=(points, labels), boxes=boxes, masks=None)
        return self.decoder(image, self.prompt.get_dense_pe(), sparse, dense, multimask_output=True)


def get_inputs():
    return [
        torch.randn(1, 32, 8, 8),
        64 * torch.rand(2, 3, 2),
        torch.tensor([[1, 0, 1], [1, 1, 0]]),
        64 * torch.rand(2, 4),
    ]


def get_init_inputs():
    return []
