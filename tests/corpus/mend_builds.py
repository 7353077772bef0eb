"""Make torchvision and torchaudio importable beside a CPU build of torch.

PyPI's builds of both are for CUDA. `import torchvision` ends with "operator torchvision::nms does
not exist": the models need that name only to exist. torchaudio loads a library that is linked
against CUDA; without that library it falls back to Python.
"""

import importlib.util
import shutil
from pathlib import Path

DEFINITIONS = """

if not _has_ops():
    OPERATORS = torch.library.Library("torchvision", "DEF")
    OPERATORS.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    OPERATORS.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""

torchvision = importlib.util.find_spec("torchvision")
if torchvision is not None:
    file = Path(torchvision.origin).with_name("extension.py")
    text = file.read_text(encoding="utf-8")
    if DEFINITIONS not in text:
        file.write_text(text + DEFINITIONS, encoding="utf-8")

torchaudio = importlib.util.find_spec("torchaudio")
if torchaudio is not None:
    shutil.rmtree(Path(torchaudio.origin).with_name("lib"), ignore_errors=True)
