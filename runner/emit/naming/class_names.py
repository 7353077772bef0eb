"""Chooses short names for classes, with further words where several would share a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from runner.emit.code.child_loops import strip_number
from runner.emit.naming.value_names import camel_case, make_unique, relative_path
from runner.emit.pages.outline import split_name
from runner.tree.part import Part
from runner.tree.part_names import fusion_stem

_RESERVED_CLASSES = {"Model", "RefactoredModel", "ComposedModel", "Path"}
"""Names that a step or the composition test uses for something else."""
_PREPOSITIONS = {"on", "to", "of"}
"""Words of a workload's name that belong to the shape after them."""


def class_names(workloads: Iterable[str]) -> dict[str, str]:
    """Return a class name for each workload: `Swiglu`, or `Linear256x384` and `Linear256x256`."""
    groups: dict[str, list[str]] = {}
    for name in sorted(workloads):
        groups.setdefault(split_name(name)[0], []).append(name)
    classes: dict[str, str] = {}
    for operation, names in groups.items():
        words = first_differences([_phrases(split_name(name)[1]) for name in names])
        for name, distinguishing in zip(names, words or ((),) * len(names), strict=True):
            stem = camel_case("_".join([operation, *distinguishing]))
            classes[name] = make_unique(
                stem, {*_RESERVED_CLASSES, *classes.values()}, separator="_"
            )
    return classes


def first_differences(variants: Sequence[Sequence[str]]) -> list[tuple[str, ...]] | None:
    """Return the fewest first words of each variant that distinguish it from the others.

    Words that all variants have are left out. None if two have the same words.
    """
    common = set(variants[0]).intersection(*variants)
    own_words = [tuple(word for word in words if word not in common) for words in variants]
    if len({*own_words}) < len(own_words):
        return None
    lengths = range(max(map(len, own_words)) + 1)
    counts = [Counter(words[:length] for words in own_words) for length in lengths]
    return [
        next((words[:n] for n in lengths if counts[n][words[:n]] == 1), words)
        for words in own_words
    ]


def _phrases(words: Sequence[str]) -> list[str]:
    """Return the words, with each preposition joined to the next one: `to_2x128x7x7`."""
    phrases: list[str] = []
    for word in words:
        if phrases and phrases[-1] in _PREPOSITIONS:
            phrases[-1] += f"_{word}"
        else:
            phrases.append(word)
    return phrases


# --- classes of one name in one file --------------------------------------------------------------


ENDS = ("first", "last")
"""Words that come before the name of a class: `FirstStep`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several emitted classes that have the same name in the author's code."""

    parts: Sequence[Part]
    """All instances of this class."""
    words: Sequence[Sequence[str]]
    """For each of its workloads, the words of its name that are no sizes: `shifted`, `masked`."""


def distinguish_variants(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return words for each variant that distinguish it from the others; it may need none.

    The rules apply in turn until no two are alike: the operation's attributes, the contents, their
    number, the position in the model.
    """
    words: list[tuple[str, ...]] = [()] * len(variants)
    for rule in (_attribute_words, _content_words, _count_words, _position_words):
        groups: dict[Hashable, list[int]] = {}
        for position, variant_words in enumerate(words):
            groups.setdefault(variant_words, []).append(position)
        for positions in groups.values():
            if len(positions) > 1:
                for position, new_words in zip(
                    positions, rule([variants[p] for p in positions]), strict=True
                ):
                    words[position] += new_words
    return words


def _differing_words(variant_words: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the first words in which variants differ; equal for variants with equal words."""
    common = set(variant_words[0]).intersection(*variant_words)
    own_words = [tuple(word for word in words if word not in common) for words in variant_words]
    kinds = list(dict.fromkeys(own_words))
    distinguishing = first_differences(kinds)
    assert distinguishing is not None
    return [distinguishing[kinds.index(words)] for words in own_words]


def _attribute_words(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return distinguishing words that all workloads of a variant share: `shifted`, `causal`."""
    return _differing_words(
        [[w for w in v.words[0] if all(w in words for words in v.words)] for v in variants]
    )


def _content_words(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return a module of the author's, else an operation, that others lack: `downsample`, `add`."""
    return _differing_words(
        [list(dict.fromkeys(_module_names(v) + _operation_stems(v))) for v in variants]
    )


def _module_names(variant: Variant) -> list[str]:
    part = variant.parts[0]
    inner_children = [c for c in part.children if c.children and c.module_path != part.module_path]
    named_children = (
        c for c in inner_children if fusion_stem([k.stem for k in c.kernels()], "") != c.stem
    )
    return [strip_number(child.name) for child in named_children]


def _operation_stems(variant: Variant) -> list[str]:
    return [kernel.stem for kernel in variant.parts[0].kernels()]


def _count_words(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return the number of modules in a list, else of operations, where all differ: `6Layers`."""
    for find_names in (_list_names, _operation_stems):
        counts = [Counter(find_names(variant)) for variant in variants]
        for name in counts[0]:
            if len({count[name] for count in counts}) == len(counts):
                return [(f"{count[name]}{camel_case(name)}",) for count in counts]
    return [()] * len(variants)


def _list_names(variant: Variant) -> list[str]:
    """Return the author's list of each child that is in one: `layers` for `layers.3`."""
    part = variant.parts[0]
    pieces = (relative_path(c.module_path, part.module_path).split(".") for c in part.children)
    entries = dict.fromkeys((p[0], p[1]) for p in pieces if len(p) > 1 and p[1].isdigit())
    return [name for name, _ in entries]


def _position_words(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return `stage2` for `stages.2.blocks.0` if all paths differ there, else `first` or `last`."""
    paths = [variant.parts[0].module_path.split(".") for variant in variants]
    for depth, pieces in enumerate(zip(*paths, strict=False)):
        if len({*pieces}) == len(variants):
            list_name = paths[0][depth - 1].removesuffix("s") if depth else "block"
            return [(f"{list_name}{piece}" if piece.isdigit() else piece,) for piece in pieces]
    starts = [[min(part.operations, default=0) for part in v.parts] for v in variants]
    ends = dict(zip((min(map(min, starts)), max(map(max, starts))), ENDS, strict=True))
    return [(ends[p[0]],) if len(p) == 1 and p[0] in ends else () for p in starts]
