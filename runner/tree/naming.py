"""Names of component files, each a function of its workload alone: one name in every model.

A kernel of one operation says all that makes its workload: dimensions, the window of a convolution
or pool, the input beside the parameters' own dimensions, each argument, dtype and layout that is
not the usual one. What no word can say (a formula of several operations, the inside of a block) is
a short digest of the workload.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import pairwise

from runner.tree.dimensions import dtype_code, shapes_word
from runner.tree.interface import Program
from runner.tree.part import Part
from runner.tree.words import kernel_words, known_by

LONGEST_NAME = 60
_MOST_SHAPES = 3


def names(program: Program, parts: Mapping[Hashable, Part]) -> dict[Hashable, tuple[str, str]]:
    """The name of each workload, given an instance of it, and why it has that name."""
    named = {key: file_name(program, part, key) for key, part in parts.items()}
    for digits in (4, 16):
        times = Counter(name for name, _ in named.values())
        shared = [key for key, (name, _) in named.items() if times[name] > 1]
        named.update((key, file_name(program, parts[key], key, digits)) for key in shared)
    return named


_WHOLE = "operation, dimensions, arguments, dtype: all that makes the workload"
_DIGEST = "with a digest of its program, which no other word of the name says"
_LONG = "with a digest, since all that makes the workload would be too long"


def file_name(program: Program, part: Part, key: Hashable, digits: int = 0) -> tuple[str, str]:
    """`conv2d_3x64_k7s2p3_on_10x224x224_fp32`, and why it has that name.

    `key` is the workload's identity, `digits` how many of its digest there must be.
    """
    if part.kernel is not None or not part.children:
        words, complete = kernel_words(program, part)
    else:
        words, complete = _words_of_children(program, part)
    words = list(filter(None, words))
    dtype = dtype_code(program, part)
    name = "_".join((part.stem, *words, dtype))
    if complete and not digits and len(name) <= LONGEST_NAME:
        return name, _WHOLE
    mark, stem = hashed(key)[: digits or 4], part.stem
    why = _LONG if complete else _DIGEST
    while True:
        name = "_".join(filter(None, (stem, *words, mark, dtype)))
        if len(name) <= LONGEST_NAME:
            return name, why
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


def hashed(key: Hashable) -> str:
    """Hexadecimal digits that two keys share only where they are equal."""
    return hashlib.sha256(repr(key).encode()).hexdigest()


# --- fusions, layers, models ----------------------------------------------------------------------


def _words_of_children(program: Program, part: Part) -> tuple[list[str], bool]:
    """What makes a workload of several kernels, and whether the words say all of it."""
    if part.level == "model":
        return [_main_shape(program, part)], True
    if _is_spelled_line(program, part):
        return _line_words(program, part)
    after = dict.fromkeys(shapes_word([program.spec(n)]) for n in part.io.outputs[:_MOST_SHAPES])
    shape = _main_shape(program, part)
    contractions = [k for k in part.children if k.kernel and k.kernel.kind == "contraction"]
    if part.level == "fusion" and len(contractions) == 1 and len(contractions[0].operations) == 1:
        return kernel_words(program, contractions[0])[0], False
    words = [shape, "" if list(after) == [shape] else f"to_{'_'.join(after)}"]
    if any(kernel.stem == "roll" for kernel in part.kernels()):
        words.append("shifted")
    attentions = [kernel for kernel in part.kernels() if kernel.stem.endswith("attention")]
    told = (word for kernel in attentions for word in known_by(program, kernel))
    return [*words, *dict.fromkeys(told)], False


def _is_spelled_line(program: Program, part: Part) -> bool:
    """Whether a part is kernels in a row, which its name lists, and nothing beside them."""
    kernels = part.children
    if part.stem != "_".join(kernel.stem for kernel in kernels):
        return False
    inside = [i for kernel in kernels for i in kernel.operations]
    return (
        sorted(inside) == sorted(part.operations)
        and all(b.io.inputs[:1] == a.io.outputs for a, b in pairwise(kernels))
        and part.io.outputs == kernels[-1].io.outputs
    )


def _line_words(program: Program, part: Part) -> tuple[list[str], bool]:
    """The words of its contraction, or first kernel, then those of the others but for shapes."""
    kernels = [kernel for kernel in part.children if kernel.kernel is not None]
    main = next((k for k in kernels if k.kernel and k.kernel.kind == "contraction"), kernels[0])
    words, complete = kernel_words(program, main)
    before = kernels[: kernels.index(main)]
    complete &= all(_keeps_shape(program, kernel) for kernel in before)
    complete &= len({kernel.stem for kernel in kernels}) == len(kernels)
    for kernel in kernels:
        if kernel is main:
            continue
        first = shapes_word([program.spec(name) for name in kernel.io.inputs[:1]])
        own, said = kernel_words(program, kernel)
        others = [word for word in own if word and word != first]
        words += [f"{kernel.stem}_{'_'.join(others)}"] if others else []
        complete &= said
    return (words, True) if complete else (kernel_words(program, main)[0], False)


def _keeps_shape(program: Program, kernel: Part) -> bool:
    ends = (*kernel.io.inputs[:1], *kernel.io.outputs)
    return len({program.spec(name).shape for name in ends}) == 1


def _main_shape(program: Program, part: Part) -> str:
    """The shape of what a part works on; a table or a mask that comes in tells less."""
    values = part.io.inputs or part.io.outputs
    told = [name for name in values if name not in program.constants] or list(values)
    return shapes_word([program.spec(told[0])]) if told else ""
