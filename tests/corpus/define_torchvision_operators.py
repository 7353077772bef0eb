"""Make torchvision importable where its compiled operators do not load.

PyPI's builds are for CUDA: beside a CPU build of torch `import torchvision` ends with "operator
torchvision::nms does not exist". Its models need those two names only to exist.
"""

import importlib.util
from pathlib import Path

DEFINITIONS = """

if not _has_ops():
    OPERATORS = torch.library.Library("torchvision", "DEF")
    OPERATORS.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    OPERATORS.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""

package = importlib.util.find_spec("torchvision")
if package is not None:
    file = Path(package.origin).with_name("extension.py")
    text = file.read_text(encoding="utf-8")
    if DEFINITIONS not in text:
        file.write_text(text + DEFINITIONS, encoding="utf-8")
