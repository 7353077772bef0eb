"""PyTorch's own encoder, norms after the residuals (Vaswani et al., 2017).

encoder_layer (model)
  linear
  2 x transformer_encoder_layer (layer)
    multihead_attention: linear, scaled_dot_product_attention, linear
    add_layer_norm: add, layer_norm
    mlp_block: linear, relu, linear, add, layer_norm
  output_head: mean, linear
"""

import torch
from torch import Tensor, nn


class Model(nn.Module):
    def __init__(self, features: int, d_model: int, classes: int) -> None:
        super().__init__()
        self.embed = nn.Linear(features, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead=4, dim_feedforward=32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.classifier = nn.Linear(d_model, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.encoder(self.embed(x)).mean(dim=1))


def get_inputs() -> list[Tensor]:
    return [torch.randn(2, 6, 8)]


def get_init_inputs() -> list[int]:
    return [8, 16, 5]
