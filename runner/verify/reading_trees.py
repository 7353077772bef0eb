"""Reads decomposition trees that anybody wrote, and completes fields that they leave out.

No value is guessed that a gate would compare: a node without shapes stays one without shapes.
"""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from runner.tree.document import (
    DECOMPOSE_AGAIN,
    SCHEMA_VERSION,
    TREE_FILE,
    Node,
    Tree,
    version_fault,
)
from runner.tree.version_1 import with_names
from runner.untrusted_files import LARGEST_TREE, read_json, read_text

_METADATA: dict[str, Any] = {
    "schema_version": SCHEMA_VERSION,
    "source_file": "original.py",
    "source_sha256": "",
    "source_level": "custom",
    "model_name": "Model",
    "kdrun_version": "unknown",
    "torch_version": "unknown",
    "mode": "eval",
    "capture": "concrete",
    "total_components": 0,
    "by_level": {},
    "unique_kernels": 0,
    "kernel_instances": 0,
}
"""Values for metadata that a foreign tree leaves out; no gate reads them."""
_MAX_REPAIRS = 4
_LARGEST_SIZE = (1 << 63) - 1


def read_tree(directory: Path) -> tuple[Tree | None, str | None]:
    """Return the tree, or the reason in one line why it cannot be read."""
    path = directory / TREE_FILE
    try:
        document = read_json(path, LARGEST_TREE)
        text = read_text(path)
    except FileNotFoundError:
        return None, f"no {TREE_FILE}"
    except OSError as error:
        return None, f"{TREE_FILE}: {error.strerror or error}"
    except (ValueError, RecursionError) as error:
        return None, f"{TREE_FILE} is not JSON: {error}"
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), dict | list):
        return None, f"{TREE_FILE} has no nodes"
    if fault := version_fault(text):
        return None, f"{TREE_FILE}: {fault}; {DECOMPOSE_AGAIN}"
    full_document = {
        "metadata": _complete_metadata(document.get("metadata")),
        "nodes": _complete_nodes(document["nodes"]),
        "data_flow": [],
    }
    for _ in range(_MAX_REPAIRS):
        try:
            tree = Tree.model_validate(full_document)
            fault = _find_impossible(tree)
            return (None, f"{TREE_FILE}: {fault}") if fault else (tree, None)
        except ValidationError as error:
            if not _drop_invalid_metadata(full_document, error):
                return None, f"{TREE_FILE}: {_describe_validation_error(error)}"
    return None, f"{TREE_FILE}: cannot be understood"


def _find_impossible(tree: Tree) -> str | None:
    """Return the first path that no file can have, or size that no tensor can have."""
    for node in tree.nodes.values():
        if not node.path.isprintable():
            return f"node {node.id!a}: no file is called {node.path!a}"
        shapes = (node.input_shapes, node.output_shapes, node.weight_shapes)
        sizes = [n for by_name in shapes for shape in by_name.values() for n in shape]
        if any(abs(n) > _LARGEST_SIZE for n in sizes):
            return f"node {node.id!a}: a shape has a size that no tensor can have"
    return None


def read_mode(directory: Path) -> Literal["eval", "train"] | None:
    """Return the mode that a tree names; None if it names none."""
    try:
        mode = json.loads(read_text(directory / TREE_FILE))["metadata"]["mode"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return mode if mode in ("eval", "train") else None


def _complete_metadata(metadata: Any) -> dict[str, Any]:
    return _METADATA | metadata if isinstance(metadata, dict) else dict(_METADATA)


def _complete_nodes(nodes: dict[str, Any] | list[Any]) -> dict[str, Any]:
    pairs = nodes.items() if isinstance(nodes, dict) else ((_node_id(n), n) for n in nodes)
    return {str(name): _complete_node(str(name), node) for name, node in pairs}


def _node_id(node: Any) -> str:
    return str(node.get("id", "")) if isinstance(node, dict) else ""


def _complete_node(name: str, node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    fields = {key: value for key, value in node.items() if key in Node.model_fields}
    for side in ("input", "output"):  # empty dicts: a node without shapes makes no claim about them
        if f"{side}_shapes" not in fields:
            fields |= {f"{side}_shapes": {}, f"{side}_dtypes": {}, f"{side}_strides": {}}
    path = fields.get("path")
    defaults = {"id": name, "name": Path(path).stem if isinstance(path, str) else name}
    return with_names(defaults | fields)


def _drop_invalid_metadata(document: dict[str, Any], error: ValidationError) -> bool:
    """Remove invalid metadata, or reset it to the default; return whether there was any."""
    is_changed = False
    for item in error.errors():
        location = item["loc"]
        if len(location) < 2 or location[0] != "metadata":
            continue
        name = str(location[1])
        document["metadata"].pop(name, None)
        if name in _METADATA:
            document["metadata"][name] = _METADATA[name]
        is_changed = True
    return is_changed


def _describe_validation_error(error: ValidationError) -> str:
    first = error.errors()[0]
    location = [str(part) for part in first["loc"]]
    message = first["msg"].removeprefix("Value error, ")
    if location[:1] == ["nodes"] and len(location) > 1:
        field = f"{'.'.join(location[2:])}: " if location[2:] else ""
        return f"node {location[1]!r}: {field}{message}"
    return f"{'.'.join(location)}: {message}" if location else message
