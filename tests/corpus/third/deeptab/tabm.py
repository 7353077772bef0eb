"""TabM: 32 tabular MLPs in one by scaled inputs and outputs, numbers as periodic embeddings."""

import torch
from deeptab.architectures.tabm import TabM
from deeptab.configs import TabMConfig


class Model(torch.nn.Module):
    def __init__(self, layers, ensemble):
        super().__init__()
        numbers = {f"n{i}": {"dimension": 1, "categories": None} for i in range(10)}
        categories = {f"c{i}": {"dimension": 1, "categories": 9} for i in range(3)}
        self.net = TabM(
            (numbers, categories, {}),
            num_classes=4,
            config=TabMConfig(
                layer_sizes=layers,
                ensemble_size=ensemble,
                use_embeddings=True,
                embedding_type="plr",
                d_model=24,
                n_frequencies=16,
                average_ensembles=False,
            ),
        )

    def forward(self, numbers, categories):
        return self.net(
            list(numbers[..., None].unbind(1)), list(categories[..., None].unbind(1)), []
        )


def get_inputs():
    return [torch.randn(64, 10), torch.randint(0, 9, (64, 3))]


def get_init_inputs():
    return [[256, 256, 128], 32]
