"""Advises where an engineer would cut a decomposition differently (rule 5); it is no verdict."""

import re
from collections.abc import Callable, Iterator, Sequence

from runner.tree.document import Node, Tree

MOST_CHILDREN = 10
"""Largest number of different children that a layer without fusions should have."""
MOST_KERNELS = 16
"""Largest number of kernels that one fusion should have."""

_MATMULS = frozenset({"matmul", "bmm", "baddbmm", "einsum"})
_AROUND_SOFTMAX = 4
"""Most kernels (scale, mask) between the scores and softmax, or between softmax and product."""

Children = Sequence[Node]


def advice(tree: Tree) -> list[str]:
    """Return one line for each component that an engineer would have drawn differently."""
    return list(dict.fromkeys(_lines(tree)))


def _lines(tree: Tree) -> Iterator[str]:
    for node in tree.nodes.values():
        children = [tree.nodes[child] for child in node.children]
        for applies, sentence in _ADVICE:
            if applies(node, children):
                yield f"{node.path}: {sentence}"


def _has_many_kernels(node: Node, children: Children) -> bool:
    """Return whether a fusion is large and does not list its blocks as groups.

    A function of the author's that calls no other is one fusion, with groups.
    """
    return node.level == "fusion" and len(children) > MOST_KERNELS and not node.groups


def _is_a_flat_layer(node: Node, children: Children) -> bool:
    return (
        _has_no_fusion(node, children)
        and len({child.path for child in children}) > MOST_CHILDREN
        and not _is_an_inline_block(node, children)
    )


def _is_an_inline_block(node: Node, children: Children) -> bool:
    return (
        _has_no_fusion(node, children) and sum(_runs_operation(c, {"add"}) for c in children) >= 2
    )


def _opens_attention(node: Node, children: Children) -> bool:
    for position, child in enumerate(children):
        if _runs_operation(child, {"softmax"}):
            kernels_before = children[max(position - 1 - _AROUND_SOFTMAX, 0) : position]
            kernels_after = children[position + 1 : position + 2 + _AROUND_SOFTMAX]
            if all(
                any(_runs_operation(c, _MATMULS) for c in side)
                for side in (kernels_before, kernels_after)
            ):
                return True
    return False


def _is_a_layout_copy(node: Node, children: Children) -> bool:
    return not children and _operation(node).startswith("contiguous")


_ADVICE: tuple[tuple[Callable[[Node, Children], bool], str], ...] = (
    (
        _is_an_inline_block,
        "holds kernels alone, and two residual adds: what leads to each add is a fusion, such as"
        " attention_block and mlp_block",
    ),
    (
        _is_a_flat_layer,
        f"has more than {MOST_CHILDREN} different children and no fusion: name its blocks",
    ),
    (
        _has_many_kernels,
        f"is a fusion of more than {MOST_KERNELS} kernels: make fusions of the blocks inside it",
    ),
    (
        _opens_attention,
        "has matmul, softmax and matmul as kernels: attention is one kernel, unless something else"
        " reads the softmax",
    ),
    (
        _is_a_layout_copy,
        "is a layout copy: it belongs to the operation that it serves",
    ),
)


def _has_no_fusion(node: Node, children: Children) -> bool:
    return node.level == "layer" and all(child.level == "kernel" for child in children)


def _runs_operation(node: Node, operations: frozenset[str] | set[str]) -> bool:
    return node.level == "kernel" and _operation(node) in operations


def _operation(node: Node) -> str:
    """Return the operation in a kernel's file name: `linear` of `linear_768x3072_fp32.py`."""
    stem = node.path.rpartition("/")[2].removesuffix(".py")
    return re.split(r"_\d", stem, maxsplit=1)[0]
