"""The tree document refuses what cannot be meant."""

from typing import Any

import pytest
from pydantic import ValidationError

from runner.tree.document import Node

FUSION: dict[str, Any] = {
    "id": "root",
    "name": "mlp",
    "level": "fusion",
    "path": "level_1_fusion/mlp.py",
    "children": ["fc1", "gelu", "fc2"],
    "input_shapes": {"x": [2, 8], "mask": []},
    "input_dtypes": {"x": "float32", "mask": "bool"},
    "output_shapes": {"y": [2, 8]},
    "output_dtypes": {"y": "float32"},
}


def test_strides_and_dtypes_of_weights_may_be_left_out() -> None:
    node = Node.model_validate(FUSION | {"groups": [["fc1", "gelu"]]})
    assert (node.input_strides, node.weight_dtypes, node.identity) == ({}, {}, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"input_dtypes": {"x": "float32"}}, "input_dtypes has other names than the shapes"),
        ({"output_dtypes": {}}, "output_dtypes has other names"),
        ({"input_strides": {"x": [8, 1], "y": [1]}}, "input_strides has other names"),
        ({"weight_dtypes": {"fc1.weight": "float32"}}, "weight_dtypes has other names"),
        ({"groups": [["fc1", "relu"]]}, "groups: ids of children alone"),
        ({"input_shapes": [[2, 8], []]}, "valid dictionary"),
    ],
)
def test_a_node_that_does_not_agree_with_itself_is_refused(
    change: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Node.model_validate(FUSION | change)
