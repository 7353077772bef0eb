"""Trees as small as a test needs them, written as nested lists."""

import re
from typing import Any

from runner.tree.document import LEVEL_FOLDER, Level, Tree

SIZE = [8, 16]


def node(
    level: Level,
    file: str,
    *children: dict[str, Any],
    name: str = "",
    inputs: tuple[list[int], ...] = (SIZE,),
    outputs: tuple[list[int], ...] = (SIZE,),
    dtype: str = "float32",
    weights: dict[str, list[int]] | None = None,
) -> dict[str, Any]:
    """A node with its children; `name`, if the author calls it otherwise than its operation."""
    return {
        "level": level,
        "path": f"{LEVEL_FOLDER[level]}/{file}.py",
        "name": name or re.split(r"_\d", file)[0],
        "children": list(children),
        "input_shapes": {f"x{n}": shape for n, shape in enumerate(inputs)},
        "output_shapes": {f"y{n}": shape for n, shape in enumerate(outputs)},
        "input_dtypes": {f"x{n}": dtype for n in range(len(inputs))},
        "output_dtypes": {f"y{n}": dtype for n in range(len(outputs))},
        "weight_shapes": weights or {},
    }


def kernel(file: str, **about: Any) -> dict[str, Any]:
    return node("kernel", file, **about)


def tree_of(root: dict[str, Any], *flow: tuple[str, str, str]) -> Tree:
    """A tree from its root; of the flow from, to, and the tensor's name."""
    nodes: dict[str, Any] = {}

    def add(identity: str, described: dict[str, Any]) -> str:
        children = described["children"]
        prefix = "" if identity == "root" else f"{identity}."
        ids = [f"{prefix}{place}" for place in range(len(children))]
        nodes[identity] = described | {"id": identity, "children": ids}
        for below, child in zip(ids, children, strict=True):
            add(below, child)
        return identity

    add("root", root)
    metadata = {
        "source_file": "net.py",
        "source_sha256": "",
        "source_level": "level3",
        "model_name": "Model",
        "kdrun_version": "0",
        "torch_version": "0",
        "capture": "fake",
        "total_components": len(nodes),
        "by_level": {},
        "unique_kernels": 0,
        "kernel_instances": 0,
    }
    edges = [
        {"from": source, "to": target, "tensor_name": name, "shape": SIZE, "dtype": "float32"}
        for source, target, name in flow
    ]
    document = {"metadata": metadata, "nodes": nodes, "data_flow": edges}
    return Tree.model_validate(document)
