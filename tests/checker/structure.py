"""Rules 4 to 7, as far as the tree and the files' text tell them."""

from __future__ import annotations

import filecmp
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from checker.directory import LEVELS, Directory
from checker.findings import Finding
from checker.sources import foreign_imports, pasted_constants, sameness

COMPOUND = {
    "einsum", "lstm", "gru", "rnn", "lstm_cell", "gru_cell", "rnn_cell", "bilinear",
    "native_multi_head_attention", "tensordot", "multi_dot",
    "linalg_multi_dot", "chain_matmul", "cdist", "kron",
}  # fmt: skip
"""Operations that people call as one and that dispatch as several, contractions among them."""
ATTENTIONS = {
    "scaled_dot_product_attention", "attention", "relu_attention", "squared_relu_attention",
    "sigmoid_attention",
}  # fmt: skip
"""Two products with probabilities between them, or one operator that is all of it."""


# --- 4 and 5: levels ------------------------------------------------------------------------------


def levels(directory: Directory) -> Iterator[Finding]:
    nodes = directory.nodes
    parents: Counter[str] = Counter(c for node in nodes.values() for c in node["children"])
    for name, node in nodes.items():
        for child in node["children"]:
            if child not in nodes:
                yield Finding(4, name, f"has a child {child}, which is no node")
            elif LEVELS[nodes[child]["level"]] >= LEVELS[node["level"]]:
                yield Finding(
                    4, name, f"a {node['level']} has the {nodes[child]['level']} {child} below it"
                )
        if len(node["children"]) == 1:
            yield Finding(4, name, "has a single child")
        if not node["children"] and node["level"] != "kernel":
            yield Finding(4, name, f"a {node['level']} with no child")
        if node["children"] and node["level"] == "kernel":
            yield Finding(4, name, "a kernel with children")
        if parents[name] != (name != "root"):
            yield Finding(4, name, f"has {parents[name]} parents")


def is_whole_model(source_level: str, root: dict[str, Any]) -> bool:
    """A kernel, and what it does is no single operation."""
    if source_level == "level1" or root["level"] != "kernel":
        return False
    return len(root["operations"]) != 1 or root["operations"][0] not in _operators()


def _operators() -> set[str]:
    functions = {*dir(torch), *dir(torch.nn.functional), *dir(torch.Tensor)}
    return functions | COMPOUND | ATTENTIONS


_ROOTS = {
    "level1": {"kernel"},
    "level2": {"fusion", "kernel"},
    "level3": {"model", "layer", "kernel"},
}


def source_level(directory: Directory) -> Iterator[Finding]:
    level, root = directory.metadata["source_level"], directory.nodes["root"]
    if root["level"] not in _ROOTS.get(level, LEVELS):
        yield Finding(5, "root", f"a {root['level']}, of a {level} problem")
    if level == "level1" and len(directory.components) != 1:
        yield Finding(5, "root", f"{len(directory.components)} files for a level1 problem")
    if level == "level2" and root["children"]:
        for child in root["children"]:
            if child in directory.nodes and directory.nodes[child]["level"] != "kernel":
                yield Finding(5, child, "of a level2 problem, and no kernel")


# --- 6: one file a workload -----------------------------------------------------------------------


def one_file(directory: Directory) -> Iterator[Finding]:
    files = set(directory.components)
    for file in sorted(files ^ directory.used.keys()):
        yield Finding(6, file, "in the tree, not written" if file not in files else "in no node")
    for file, nodes in directory.used.items():
        for node in nodes:
            if not file.startswith(f"level_{LEVELS[node['level']]}_{node['level']}/"):
                yield Finding(6, node["id"], f"a {node['level']} in {file}")
            if node["instance_count"] != len(nodes):
                yield Finding(
                    6,
                    node["id"],
                    f"says {node['instance_count']} instances, there are {len(nodes)}",
                )
    twins: dict[str, str] = {}
    for file in directory.components:
        first = twins.setdefault(f"{file.partition('/')[0]} {sameness(directory, file)}", file)
        if first != file:
            yield Finding(6, file, f"is {first} once more")
    for folder in directory.steps:
        for copy in sorted(directory.path.glob(f"{folder}/children/*.py")):
            real = [f for f in files if f.endswith(f"/{copy.name}")]
            if not real or not filecmp.cmp(copy, directory.path / real[0], shallow=False):
                where = copy.relative_to(directory.path).as_posix()
                yield Finding(6, where, "is no copy of a component file")
    metadata, counts = directory.metadata, Counter(f.partition("/")[0][8:] for f in files)
    kernels = sum(1 for _ in directory.kernels)
    if {k: v for k, v in metadata["by_level"].items() if v} != counts:
        yield Finding(6, "metadata", f"counts {metadata['by_level']}, there are {dict(counts)}")
    if metadata["kernel_instances"] != kernels or metadata["total_components"] != len(files):
        yield Finding(6, "metadata", f"there are {kernels} kernel instances, {len(files)} files")


# --- 7: standalone --------------------------------------------------------------------------------


def standalone(directory: Directory) -> Iterator[Finding]:
    for file in directory.components:
        tree = directory.parsed(file)
        for what in (*foreign_imports(tree), *pasted_constants(tree)):
            yield Finding(7, file, what)


def operation_of(file: str) -> str:
    """The operation of a component file's name: `conv2d` of `conv2d_3x64_k7s2p3_fp32.py`."""
    stem = file.rpartition("/")[2].removesuffix(".py")
    return re.split(r"_(?=\d+x|\d+_|scalar)", stem, maxsplit=1)[0]
