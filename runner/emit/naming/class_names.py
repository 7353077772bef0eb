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

_TAKEN = {"Model", "RefactoredModel", "ComposedModel", "Path"}
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
        for name, own in zip(names, words or ((),) * len(names), strict=True):
            plain = camel_case("_".join([operation, *own]))
            classes[name] = make_unique(plain, {*_TAKEN, *classes.values()}, between="_")
    return classes


def first_differences(variants: Sequence[Sequence[str]]) -> list[tuple[str, ...]] | None:
    """Return the fewest first words of each variant that distinguish it from the others.

    Words that all variants have are left out. None if two have the same words.
    """
    common = set(variants[0]).intersection(*variants)
    own = [tuple(word for word in words if word not in common) for words in variants]
    if len({*own}) < len(own):
        return None
    lengths = range(max(map(len, own)) + 1)
    counts = [Counter(words[:length] for words in own) for length in lengths]
    return [next((words[:n] for n in lengths if counts[n][words[:n]] == 1), words) for words in own]


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
    for rule in (_does, _holds, _counts, _stands):
        groups: dict[Hashable, list[int]] = {}
        for place, told in enumerate(words):
            groups.setdefault(told, []).append(place)
        for places in groups.values():
            if len(places) > 1:
                for place, more in zip(places, rule([variants[p] for p in places]), strict=True):
                    words[place] += more
    return words


def _differences(told: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the first words in which variants differ; equal for variants with equal words."""
    common = set(told[0]).intersection(*told)
    own = [tuple(word for word in words if word not in common) for words in told]
    kinds = list(dict.fromkeys(own))
    short = first_differences(kinds)
    assert short is not None
    return [short[kinds.index(words)] for words in own]


def _does(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return distinguishing words that all workloads of a variant share: `shifted`, `causal`."""
    return _differences(
        [[w for w in v.words[0] if all(w in words for words in v.words)] for v in variants]
    )


def _holds(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return a module of the author's, else an operation, that others lack: `downsample`, `add`."""
    return _differences([list(dict.fromkeys(_modules(v) + _operations(v))) for v in variants])


def _modules(variant: Variant) -> list[str]:
    part = variant.parts[0]
    inner = [c for c in part.children if c.children and c.module_path != part.module_path]
    named = (c for c in inner if fusion_stem([k.stem for k in c.kernels()], "") != c.stem)
    return [strip_number(child.name) for child in named]


def _operations(variant: Variant) -> list[str]:
    return [kernel.stem for kernel in variant.parts[0].kernels()]


def _counts(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return the number of modules in a list, else of operations, where all differ: `6Layers`."""
    for things in (_listed, _operations):
        counts = [Counter(things(variant)) for variant in variants]
        for thing in counts[0]:
            if len({count[thing] for count in counts}) == len(counts):
                return [(f"{count[thing]}{camel_case(thing)}",) for count in counts]
    return [()] * len(variants)


def _listed(variant: Variant) -> list[str]:
    """Return the author's list of each child that is in one: `layers` for `layers.3`."""
    part = variant.parts[0]
    pieces = (relative_path(c.module_path, part.module_path).split(".") for c in part.children)
    places = {(p[0], p[1]) for p in pieces if len(p) > 1 and p[1].isdigit()}
    return [name for name, _ in places]


def _stands(variants: Sequence[Variant]) -> list[tuple[str, ...]]:
    """Return `stage2` for `stages.2.blocks.0` if all paths differ there, else `first` or `last`."""
    paths = [variant.parts[0].module_path.split(".") for variant in variants]
    for place, pieces in enumerate(zip(*paths, strict=False)):
        if len({*pieces}) == len(variants):
            around = paths[0][place - 1].removesuffix("s") if place else "block"
            return [(f"{around}{piece}" if piece.isdigit() else piece,) for piece in pieces]
    places = [[min(part.operations, default=0) for part in v.parts] for v in variants]
    ends = dict(zip((min(map(min, places)), max(map(max, places))), ENDS, strict=True))
    return [(ends[p[0]],) if len(p) == 1 and p[0] in ends else () for p in places]
