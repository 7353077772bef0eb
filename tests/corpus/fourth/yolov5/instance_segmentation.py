"""YOLOv5n for instances: boxes with mask coefficients, and the prototypes of the masks, put
together for the best boxes."""

from pathlib import Path

import torch
import yolov5.models
from yolov5.models.yolo import SegmentationModel


class Model(torch.nn.Module):
    def __init__(self, name, classes, best):
        super().__init__()
        folder = Path(yolov5.models.__file__).parent
        self.best = best
        self.classes = classes
        self.net = SegmentationModel(str(folder / "segment" / name), ch=3, nc=classes)

    def forward(self, image):
        boxes, prototypes = self.net(image)[:2]
        place = boxes[..., 4].topk(self.best, dim=1).indices
        boxes = boxes.gather(1, place[..., None].expand(-1, -1, boxes.shape[-1]))
        weights = boxes[..., 5 + self.classes :]
        return boxes[..., :6], torch.einsum("bnk,bkhw->bnhw", weights, prototypes).sigmoid()


def get_inputs():
    return [torch.rand(1, 3, 192, 192)]


def get_init_inputs():
    return ["yolov5n-seg.yaml", 10, 20]
