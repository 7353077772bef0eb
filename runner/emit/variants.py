"""Short names for classes: what they are, and a word more where two would share a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from runner.emit.names import camel, unique
from runner.emit.outline import split_name

_TAKEN = {"Model", "RefactoredModel", "ComposedModel", "Path"}
"""Names that a step and the composition test have for something else."""
_PREPOSITIONS = {"on", "to", "of"}
"""Words of a workload's name that belong to the shape after them."""


def class_names(workloads: Iterable[str]) -> dict[str, str]:
    """Name a class for each workload: `Swiglu`; of two `Linear256x384` and `Linear256x256`."""
    groups: dict[str, list[str]] = {}
    for name in sorted(workloads):
        groups.setdefault(split_name(name)[0], []).append(name)
    classes: dict[str, str] = {}
    for operation, names in groups.items():
        words = first_differences([_phrases(split_name(name)[1]) for name in names])
        for name, own in zip(names, words or ((),) * len(names), strict=True):
            plain = camel("_".join([operation, *own]))
            classes[name] = unique(plain, {*_TAKEN, *classes.values()}, between="_")
    return classes


def first_differences(variants: Sequence[Sequence[str]]) -> list[tuple[str, ...]] | None:
    """As few of each variant's words as tell it from the others; words that all have say nothing.

    None where the words of two are the same.
    """
    common = set(variants[0]).intersection(*variants)
    own = [tuple(word for word in words if word not in common) for words in variants]
    if len({*own}) < len(own):
        return None
    lengths = range(max(map(len, own)) + 1)
    counts = [Counter(words[:length] for words in own) for length in lengths]
    return [
        next((words[:n] for n in lengths if counts[n][words[:n]] == 1), words) for words in own
    ]


def _phrases(words: Sequence[str]) -> list[str]:
    """`to_2x128x7x7` is one."""
    phrases: list[str] = []
    for word in words:
        if phrases and phrases[-1] in _PREPOSITIONS:
            phrases[-1] += f"_{word}"
        else:
            phrases.append(word)
    return phrases
