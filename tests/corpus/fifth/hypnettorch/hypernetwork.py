"""A chunked hypernetwork that writes all weights of a ResNet, for one of several tasks."""

import torch
from hypnettorch.hnets import ChunkedHMLP
from hypnettorch.mnets import ResNet


class Model(torch.nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.main = ResNet(
            in_shape=(32, 32, 3),
            num_classes=10,
            n=3,
            num_feature_maps=(8, 8, 16, 32),
            no_weights=True,
            use_batch_norm=True,
            bn_track_stats=False,
            verbose=False,
        )
        self.hyper = ChunkedHMLP(
            self.main.hyper_shapes_learned,
            chunk_size=2000,
            chunk_emb_size=32,
            cond_in_size=32,
            num_cond_embs=tasks,
            layers=(64, 128),
            verbose=False,
        )

    def forward(self, images):
        return [self.main(images.flatten(1), weights=self.hyper(cond_id=task)) for task in (0, 1)]


def get_inputs():
    return [torch.randn(8, 32, 32, 3)]


def get_init_inputs():
    return [5]
