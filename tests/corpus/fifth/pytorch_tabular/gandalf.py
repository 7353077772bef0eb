"""GANDALF: gated feature learning units with t-softmax masks over embedded table columns."""

import torch
from omegaconf import OmegaConf
from pytorch_tabular.models.gandalf import GANDALFConfig, GANDALFModel


class Model(torch.nn.Module):
    def __init__(self, stages, classes):
        super().__init__()
        config = OmegaConf.structured(GANDALFConfig(task="classification", gflu_stages=stages))
        config = OmegaConf.create(OmegaConf.to_container(config))
        OmegaConf.set_struct(config, False)
        inferred = OmegaConf.create(
            {
                "categorical_dim": 3,
                "categorical_cardinality": [6, 11, 31],
                "embedding_dims": [[6, 3], [11, 6], [31, 16]],
                "continuous_dim": 12,
                "output_dim": classes,
                "output_cardinality": [classes],
                "embedded_cat_dim": 25,
            }
        )
        self.net = GANDALFModel(config, inferred_config=inferred)

    def forward(self, continuous, categorical):
        output = self.net({"continuous": continuous, "categorical": categorical})
        return output["logits"], output["backbone_features"]


def get_inputs():
    return [torch.randn(64, 12), torch.randint(0, 6, (64, 3))]


def get_init_inputs():
    return [8, 4]
