"""Names component files; a name depends on the workload alone, so it is the same in every model.

The name of a kernel of one operation gives everything that makes its workload: dimensions, the
window of a convolution or pool, the rest of the input's shape, and each argument, dtype and layout
that is not the default. A short digest of the workload stands for what no word can say (a formula
of several operations, the inside of a block).
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import pairwise

from runner.tree.dimensions import dtype_code, shapes_word
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.part_names import fusion_stem
from runner.tree.workload_words import identifying_words, kernel_words

LONGEST_NAME = 64
"""Longest name with which an import fits in a line of 88 characters."""
_LONGEST_WITH_DIGEST = 60
_MOST_SHAPES = 3


def name_workloads(
    program: Program, parts: Mapping[Hashable, Part]
) -> dict[Hashable, tuple[str, str]]:
    """Return the name of each workload, and why; `parts` has one instance of each."""
    name_of = {key: file_name(program, part, key) for key, part in parts.items()}
    for digits in (4, 16):
        counts = Counter(name for name, _ in name_of.values())
        ambiguous_keys = [key for key, (name, _) in name_of.items() if counts[name] > 1]
        name_of.update((key, file_name(program, parts[key], key, digits)) for key in ambiguous_keys)
    return name_of


_COMPLETE = "operation, dimensions, arguments, dtype: all that makes the workload"
_PROBLEM = "the problem's name, its inputs and its dtype"
_DIGEST = "with a digest of its program, which no other word of the name says"
_LONG = "with a digest, since all that makes the workload would be too long"


def file_name(program: Program, part: Part, key: Hashable, digits: int = 0) -> tuple[str, str]:
    """Return `conv2d_3x64_k7s2p3_on_10x224x224_fp32`, and why it has that name.

    `key` is the workload's identity; `digits` is how many digits of its digest the name must have.
    """
    if part.kernel is not None or not part.children:
        words, complete = kernel_words(program, part)
    else:
        words, complete = _words_of_children(program, part)
    dtype = dtype_code(program, part)
    name = "_".join(filter(None, (part.stem, *words, dtype)))
    if complete and not digits and len(name) <= LONGEST_NAME:
        return name, _PROBLEM if part.level == "model" else _COMPLETE
    if part.children and part.level != "model":
        words = _main_words(program, part)
    words = [word for word in words if word and not _LAYOUT.match(word)]
    digest, stem = hash_key(key)[: digits or 4], part.stem
    reason = _LONG if complete else _DIGEST
    while True:
        name = "_".join(filter(None, (stem, *words, digest, dtype)))
        if len(name) <= _LONGEST_WITH_DIGEST:
            return name, reason
        if stem in _SHORTER:
            stem = _SHORTER[stem]
        elif len(words) > 1:
            words.pop()
        elif "_" in "".join(words):
            words = [words[0].rpartition("_")[0]]
        elif "_" in stem:
            stem = stem.rpartition("_")[0]
        else:
            words = []


_SHORTER = {"scaled_dot_product_attention": "attention"}
_ABBREVIATIONS = {"batch_norm": "bn", "layer_norm": "ln", "group_norm": "gn"}
"""Abbreviations that engineers use in a list of kernels: `conv2d_bn_relu`."""
_LAYOUT = re.compile(r"((in|weight)\d+_)?(strides|permuted|channels_last)")
"""Matches words for layouts, which a name with a digest leaves out."""


def hash_key(key: Hashable) -> str:
    """Return hexadecimal digits that are equal exactly if the keys are equal."""
    return hashlib.sha256(repr(key).encode()).hexdigest()


# --- fusions, layers, models ----------------------------------------------------------------------


def _words_of_children(program: Program, part: Part) -> tuple[list[str], bool]:
    """Return words for a workload of several kernels, and whether they say everything about it."""
    if part.level == "model":
        return [_main_shape(program, part)], True
    words = _line_words(program, part) if part.level == "fusion" else []
    return (words, True) if words else ([], False)


def _main_words(program: Program, part: Part) -> list[str]:
    """Return words that people know a block by: its only contraction, else its shape."""
    contractions = _contractions(part)
    if part.level == "fusion" and len(contractions) == 1 and len(contractions[0].operations) == 1:
        return kernel_words(program, contractions[0])[0]
    shape = _main_shape(program, part)
    output_words = dict.fromkeys(
        shapes_word([program.spec(n)]) for n in part.io.outputs[:_MOST_SHAPES]
    )
    words = [shape, "" if list(output_words) == [shape] else f"to_{'_'.join(output_words)}"]
    if any(kernel.stem == "roll" for kernel in part.kernels()):
        words.append("shifted")
    attentions = [kernel for kernel in part.kernels() if kernel.stem.endswith("attention")]
    attention_words = (word for kernel in attentions for word in identifying_words(program, kernel))
    return [*words, *dict.fromkeys(attention_words)]


def _contractions(part: Part) -> list[Part]:
    return [child for child in part.children if child.kernel and child.kernel.kind == "contraction"]


def _line_words(program: Program, part: Part) -> list[str]:
    """Return words for a line of kernels; none if words cannot say everything about it.

    First come the words of its contraction, or of its first kernel, then those of the other kernels
    without the shape of their input, then the kernels' names, if the author's name does not give
    them.
    """
    kernels = part.children
    contractions = _contractions(part)
    main_kernel = (*contractions, *kernels)[0]
    before = kernels[: kernels.index(main_kernel)]
    if len(contractions) > 1:
        return []
    if not _is_line(part) or not all(_keeps_shape(program, kernel) for kernel in before):
        return []
    words, other_kernels = [], []
    for n, kernel in enumerate(kernels):
        own_words, complete = kernel_words(program, kernel)
        if not complete:
            return []
        position = kernel.io.inputs.index(kernels[n - 1].io.outputs[0]) if n else 0
        own_words += [f"in{position + 1}"] if position else []
        if kernel is main_kernel:
            words = own_words
            continue
        input_shape = shapes_word([program.spec(name) for name in kernel.io.inputs[:1]])
        other_kernels.append(
            (kernel.stem, [word for word in own_words if word and word != input_shape])
        )
    if len({(stem, bool(own_words)) for stem, own_words in other_kernels}) > len(
        {stem for stem, _ in other_kernels}
    ):
        return []  # two equal operations, only one of which has words: the name could not say which
    for stem, own_words in other_kernels:
        # The full name of the line says which pool there is.
        short = "pool" if "_pool" in stem else _ABBREVIATIONS.get(stem, stem)
        words += ["_".join([short, *own_words])] if own_words else []
    stems = [kernel.stem for kernel in kernels]
    if part.stem == fusion_stem(stems, ""):
        return words
    return [*words, "as", *(_ABBREVIATIONS.get(stem, stem) for stem in stems)]


def _is_line(part: Part) -> bool:
    """Return whether each kernel reads the one before it, and every other input once, in order."""
    kernels = part.children
    inside = [i for kernel in kernels for i in kernel.operations]
    computed = {name for kernel in kernels for name in kernel.io.outputs}
    outer_inputs = [name for kernel in kernels for name in kernel.io.inputs if name not in computed]
    return (
        not any(kernel.children for kernel in kernels)
        and sorted(inside) == sorted(part.operations)
        and all(len(kernel.io.outputs) == 1 for kernel in kernels[:-1])
        and all(computed.intersection(b.io.inputs) == {*a.io.outputs} for a, b in pairwise(kernels))
        and outer_inputs == [*part.io.inputs]
        and [name for kernel in kernels for name in kernel.io.states] == [*part.io.states]
        and part.io.outputs == kernels[-1].io.outputs
    )


def _keeps_shape(program: Program, kernel: Part) -> bool:
    ends = (*kernel.io.inputs[:1], *kernel.io.outputs)
    return len({program.spec(name).shape for name in ends}) == 1


def _main_shape(program: Program, part: Part) -> str:
    """Return the shape of a part's main input, which is no constant table or mask if possible."""
    values = part.io.inputs or part.io.outputs
    main_values = [name for name in values if name not in program.constants] or list(values)
    return shapes_word([program.spec(main_values[0])]) if main_values else ""
