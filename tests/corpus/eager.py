"""Exit with 0 if the model in FILE gives the same output twice, to the last bit; else say why not.

python tests/corpus/eager.py FILE
"""

import copy
import runpy
import sys

import torch
from torch.utils import _pytree as pytree


def output(model: torch.nn.Module, inputs: list) -> list[torch.Tensor]:
    torch.manual_seed(2)
    with torch.no_grad():
        leaves = pytree.tree_leaves(model(*copy.deepcopy(inputs)))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def main() -> str | None:
    file = runpy.run_path(sys.argv[1])
    torch.manual_seed(0)
    model = file["Model"](*file["get_init_inputs"]()).eval()
    torch.manual_seed(1)
    inputs = file["get_inputs"]()
    first, second = output(model, inputs), output(model, inputs)
    if not first:
        return "forward() returns no tensor"
    for left, right in zip(first, second, strict=True):
        if not torch.allclose(left, right, rtol=0, atol=0, equal_nan=True):
            return "two runs with the same seed differ"
    return None


if __name__ == "__main__":
    sys.exit(main())
