"""Reads `decomposition_tree.json` of schema version 1 as if it were of version 2.

Version 1 listed shapes, dtypes and strides without names, and had no dtypes of weights, attributes,
identities or groups. These fields stay empty. Only the commands that show decompositions read it:
`show`, `diff`, `report` and `workloads`.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.tree.document import TREE_FILE, Tree, read_text, schema_version

_LISTS = {
    "input": ("input_shapes", "input_dtypes", "input_strides"),
    "output": ("output_shapes", "output_dtypes"),
}
"""For each kind of tensor, the fields that version 1 wrote as lists."""


def read_any_version(directory: Path) -> Tree:
    """Read a decomposition directory's tree of version 1 or 2.

    Raises:
        DecompositionError: there is none, or it is of another version.
    """
    text = read_text(directory)
    if schema_version(text) == 1:
        text = json.dumps(_convert_document(json.loads(text)))
    return Tree.parse(text, directory / TREE_FILE)


def _convert_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document of version 1 as one of version 2."""
    metadata = {**document["metadata"], "schema_version": 2}
    nodes = document.get("nodes")
    if isinstance(nodes, dict):
        nodes = {
            name: _convert_node(node) if isinstance(node, dict) else node
            for name, node in nodes.items()
        }
    return {**document, "metadata": metadata, "nodes": nodes}


def _convert_node(node: dict[str, Any]) -> dict[str, Any]:
    node = with_names(node)
    operations = node.get("operations")
    if node.get("level") == "kernel" and isinstance(operations, list) and len(operations) == 1:
        node["operation"] = operations[0]
    return node


def with_names(node: dict[str, Any]) -> dict[str, Any]:
    """Return the node with names for the tensors of its lists: `input`, `input_2`, `output`."""
    named_fields = {
        field: dict(zip(number_names(name, len(node[field])), node[field], strict=True))
        for name, fields in _LISTS.items()
        for field in fields
        if isinstance(node.get(field), list)
    }
    return node | named_fields


def number_names(name: str, count: int) -> Sequence[str]:
    """Return `output`, `output_2`, `output_3`."""
    return [name if n == 1 else f"{name}_{n}" for n in range(1, count + 1)]
