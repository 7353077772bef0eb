"""AudioSeal: a generator hides a 16-bit message in speech, and a detector finds it again."""

import importlib.resources
import os

os.environ["NO_TORCH_COMPILE"] = "1"

import torch
from audioseal.builder import (
    AudioSealDetectorConfig,
    AudioSealWMConfig,
    DecoderConfig,
    SEANetConfig,
    create_detector,
    create_generator,
)
from omegaconf import OmegaConf


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        cards = importlib.resources.files("audioseal") / "cards"
        card = OmegaConf.to_container(OmegaConf.load(str(cards / "audioseal_wm_16bits.yaml")))
        card["seanet"]["norm"] = "none"
        net = SEANetConfig(**card["seanet"])
        decoder = DecoderConfig(**card["decoder"])
        self.generator = create_generator(AudioSealWMConfig(card["nbits"], net, decoder))
        self.detector = create_detector(AudioSealDetectorConfig(card["nbits"], net))

    def forward(self, speech, message):
        marked = speech + self.generator.get_watermark(speech, message=message)
        present, bits = self.detector(marked)
        return marked, present, bits


def get_inputs():
    return [0.1 * torch.randn(2, 1, 16000), torch.randint(0, 2, (2, 16))]


def get_init_inputs():
    return []
