"""D-SCRIPT: two proteins' language-model embeddings to a contact map and a chance to interact."""

import torch
from dscript.models.contact import ContactCNN
from dscript.models.embedding import FullyConnectedEmbed
from dscript.models.interaction import ModelInteraction


class Model(torch.nn.Module):
    def __init__(self, embedding, width):
        super().__init__()
        self.net = ModelInteraction(
            FullyConnectedEmbed(embedding, width, dropout=0.5),
            ContactCNN(width, hidden_dim=50, width=7),
            use_cuda=False,
            do_w=True,
            do_sigmoid=True,
            do_pool=True,
            pool_size=9,
        )

    def forward(self, first, second):
        return self.net.map_predict(first, second)


def get_inputs():
    return [torch.randn(1, 120, 1024), torch.randn(1, 90, 1024)]


def get_init_inputs():
    return [1024, 100]
