"""AKT of pyKT: context-aware attention with distance decay over a student's answers; the chance
that each next answer is right."""

import torch
from pykt.models.akt import AKT


class Model(torch.nn.Module):
    def __init__(self, concepts, questions, width):
        super().__init__()
        self.model = AKT(
            n_question=concepts,
            n_pid=questions,
            d_model=width,
            n_blocks=2,
            dropout=0.1,
            d_ff=2 * width,
            num_attn_heads=4,
        )

    def forward(self, concepts, answers, questions):
        predictions, _ = self.model(concepts, answers, questions)
        return predictions


def get_inputs():
    return [
        torch.randint(0, 80, (4, 60)),
        torch.randint(0, 2, (4, 60)),
        torch.randint(0, 300, (4, 60)),
    ]


def get_init_inputs():
    return [80, 300, 128]
