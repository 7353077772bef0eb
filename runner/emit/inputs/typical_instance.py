"""Chooses the instance of a workload whose input is typical, for its file to draw."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from runner.graph.distributions import Distribution, mix
from runner.tree.interface import Program
from runner.tree.part import Part

FAR = 7
"""Largest ratio between the standard deviations of instances that one distribution stands for."""


@dataclass(frozen=True, slots=True)
class TypicalInput:
    """A typical input of a workload's instances."""

    part: Part
    """The instance that it comes from."""
    value: str
    """Name of the value in the graph."""
    distribution: Distribution
    """Distribution over all instances with a similar input."""


def typical_inputs(program: Program, parts: Sequence[Part]) -> dict[str, TypicalInput]:
    """Return for each input of the first part the typical one among all parts.

    One file stands for all instances, behind a relu or not, in the first block or in the last. The
    typical input is of the most frequent sort of distribution, and there in the largest group whose
    standard deviations differ by at most FAR; of equal groups, the one with the first part counts.
    """
    typical: dict[str, TypicalInput] = {}
    for position, name in enumerate(parts[0].io.inputs):
        candidates = [(p, p.io.inputs[position]) for p in parts]
        distributions = {value: program.distributions[value] for _, value in candidates}
        groups: dict[object, list[tuple[Part, str]]] = {}
        for part, value in candidates:
            groups.setdefault(distributions[value].draw_key, []).append((part, value))
        largest_group = max(groups.values(), key=len)
        largest_group.sort(key=lambda item: distributions[item[1]].std)
        similar = _find_similar(largest_group, distributions, parts[0])
        part, value = similar[(len(similar) - 1) // 2]
        mixture = mix([(1.0, distributions[v]) for _, v in similar])
        smallest_std, largest_std = (distributions[v].std for _, v in (similar[0], similar[-1]))
        if mixture.std:
            scaled = mixture.scale(math.sqrt(smallest_std * largest_std) / mixture.std)
            mixture = replace(scaled, low=mixture.low, high=mixture.high)
        typical[name] = TypicalInput(part, value, mixture)
    return typical


def _find_similar(
    instances: list[tuple[Part, str]], distributions: Mapping[str, Distribution], preferred: Part
) -> list[tuple[Part, str]]:
    """Return the most instances whose standard deviations, by which they are sorted, are similar.

    None is more than FAR times another. Of equally many, those with the preferred part count.
    """
    stds = [distributions[value].std for _, value in instances]
    ends = [bisect_right(stds, std * FAR) for std in stds]
    place = next((n for n, (part, _) in enumerate(instances) if part is preferred), -1)
    begin, end = max(enumerate(ends), key=lambda run: (run[1] - run[0], run[0] <= place < run[1]))
    return instances[begin:end]
