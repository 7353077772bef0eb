"""lightly's DINO: a student and a teacher with weight-normalised heads, and the loss's logits."""

import torch
from lightly.models.modules import DINOProjectionHead
from torchvision.models import resnet18


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.student = resnet18(num_classes=64)
        self.student_head = DINOProjectionHead(64, 96, 32, 128, freeze_last_layer=1)
        self.teacher = resnet18(num_classes=64)
        self.teacher_head = DINOProjectionHead(64, 96, 32, 128)

    def forward(self, crop, whole):
        learned = self.student_head(self.student(crop))
        target = self.teacher_head(self.teacher(whole))
        return learned.log_softmax(-1), (target / 0.04).softmax(-1)


def get_inputs():
    return [torch.randn(2, 3, 32, 32), torch.randn(2, 3, 64, 64)]


def get_init_inputs():
    return []
