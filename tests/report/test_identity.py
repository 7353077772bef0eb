"""When two kernel files are one workload, and when one family."""

from typing import Any

import pytest

from runner.report.family import family_name
from runner.report.identity import identify
from runner.tree.document import Node

LINEAR = '''
"""{doc}"""
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.{name} = nn.Linear(in_features={i}, out_features={o}{extra})

    def forward(self, {x}: torch.Tensor):
        return self.{name}({x})
'''

WEIGHT = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {start}

    def forward(self, x):
        return x + self.w
"""


def linear(**changed: Any) -> str:
    words = {"doc": "one", "name": "fc", "x": "x", "i": 16, "o": 4, "extra": ""} | changed
    return LINEAR.format(**words)


def node(**changed: Any) -> Node:
    fields = {
        "id": "a",
        "name": "a",
        "level": "kernel",
        "path": "level_0_kernel/a.py",
        "operations": ["linear"],
        "input_shapes": [[8, 16]],
        "output_shapes": [[8, 4]],
        "input_dtypes": ["float32"],
        "output_dtypes": ["float32"],
        "input_strides": [[16, 1]],
        "weight_shapes": {"fc.weight": [4, 16]},
    }
    return Node.model_validate(fields | changed)


def test_names_and_docstrings_make_no_difference() -> None:
    mine = identify(linear(), node())
    theirs = identify(
        linear(doc="two", name="head", x="hidden"), node(weight_shapes={"head.weight": [4, 16]})
    )
    assert mine == theirs


def test_another_attribute_is_another_family() -> None:
    mine, theirs = identify(linear(), node()), identify(linear(extra=", bias=False"), node())
    assert mine.family != theirs.family


def test_another_size_is_another_workload_of_the_same_family() -> None:
    mine = identify(linear(), node())
    theirs = identify(
        linear(i=32),
        node(input_shapes=[[8, 32]], input_strides=[[32, 1]], weight_shapes={"w": [4, 32]}),
    )
    assert mine.workload != theirs.workload
    assert mine.family == theirs.family


def test_strides_and_dtypes_are_part_of_a_workload() -> None:
    plain = identify(linear(), node())
    assert identify(linear(), node(input_strides=[[1, 8]])).workload != plain.workload
    assert identify(linear(), node(input_dtypes=["float16"])).workload != plain.workload


def test_strides_of_dimensions_of_one_are_as_torch_has_them() -> None:
    one = node(input_shapes=[[1, 1, 16]], input_strides=[[16, 16, 1]])
    assert identify(linear(), one) == identify(linear(), one)


def test_the_values_that_weights_start_from_make_no_difference() -> None:
    starts = (
        "self.w = nn.Parameter(torch.randn(4))",
        "self.w = nn.Parameter(torch.zeros(4) + 1.5)",
        "e = torch.empty(4)\n        e.uniform_(-1, 1)\n        self.w = nn.Parameter(e)",
    )
    found = {identify(WEIGHT.format(start=start), node()) for start in starts}
    assert len(found) == 1


def test_a_depthwise_convolution_is_one_family_over_its_channels() -> None:
    text = WEIGHT.replace("return x + self.w", "return self.w(x)")

    def conv(channels: int, groups: int) -> str:
        return text.format(
            start=f"self.w = nn.Conv2d(in_channels={channels}, out_channels={channels}, "
            f"kernel_size=3, groups={groups})"
        )

    small, large = identify(conv(32, 32), node()), identify(conv(64, 64), node())
    assert small.family == large.family
    assert small.family != identify(conv(64, 4), node()).family
    assert family_name(conv(64, 64), node()) == "linear(kernel_size=3, depthwise)"
    assert family_name(conv(64, 4), node()) == "linear(kernel_size=3, groups=4)"


def test_a_file_without_a_model_is_none() -> None:
    with pytest.raises(ValueError, match="no class Model"):
        identify("x = 1", node())
    with pytest.raises(SyntaxError):
        identify("class Model(", node())
